"""Plans on the agents: what runs there, and how another takes its place."""
