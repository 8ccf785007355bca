"""Mutual TLS of an agent and of its clients. Only `names` is light: whoever imports the rest has TLS configured."""
