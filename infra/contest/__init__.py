"""The contest at blind crossings: who crashes under which way to plan and to run the collision warning."""
