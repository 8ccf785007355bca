"""Agents as the coordinator meets them: addresses, identities, local agents, deployment, collection, profiles.

Begin at agents.py: every call to an agent goes through it. deployment/deploy.py and collection/collect.py are the two
long procedures.
"""
