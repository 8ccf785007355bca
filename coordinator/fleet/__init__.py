"""Agents: where they are, what is deployed on them, and what is collected from them."""
