"""The commands of `node-agent` beside the agent itself: feed, listen, operators, charges, simulate, doctor.

Begin at cli.py, where each command has its options. doctor/ examines a machine. See docs/reference/node_agent.md.
"""
