"""A replay into live agents: prepared, sent, listened to, lap by lap, and written down."""
