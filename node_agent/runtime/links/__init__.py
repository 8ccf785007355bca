"""Connections of one core: accepted ones, links to peers, sinks, and the credit that slows senders down.

Begin at acceptor.py and roles.py for what comes in, outbox.py and peer_link.py for what goes out. credit.py is
backpressure, pending_punctuation.py holds punctuation until a link is up. See docs/explanation/links.md.
"""
