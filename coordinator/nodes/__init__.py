"""Agents on real nodes: a systemd unit, playbooks, and the files of two nodes to begin with.

It imports the standard library only. See docs/how_to/two_pis.md.
"""
