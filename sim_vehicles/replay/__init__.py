"""A replay into live agents: prepared, sent, listened to, lap by lap, and written down.

The agent's client is imported inside functions. Begin at preparation.py: everything that is decided before the first
tuple leaves. live.py sends, listening.py listens. replay_document.py has the types of replay.json, reads and writes it.
replay_summary.py fills them.
"""
