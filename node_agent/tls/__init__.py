"""Mutual TLS of an agent and of its clients. Only `names` is light. The rest is imported where TLS is configured."""
