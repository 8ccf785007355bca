"""Mutual TLS of an agent and of its clients: identities, names, sessions without a socket, failed handshakes.

Only `names` is light. The rest is imported where TLS is configured. Begin at session.py: bytes in and bytes out.
identity.py loads a folder of certificates, or refuses it.
"""
