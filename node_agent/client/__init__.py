"""Clients of an agent: `Source` and `Sink`, their connections, and where agents are."""
