"""Environments of their own, for what the environment of the product cannot hold."""
