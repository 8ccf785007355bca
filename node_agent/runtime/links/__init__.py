"""Connections of one core: who is accepted, what is sent to peers and sinks, and what is owed to them."""
