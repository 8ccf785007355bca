"""Agents on real nodes: a systemd unit, playbooks, and the files of two nodes to begin with."""
