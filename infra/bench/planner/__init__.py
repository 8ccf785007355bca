"""The planner by size: how soon there is a plan, and how good it is."""
