"""Data links as pure state machines: acknowledged, in order, never twice, resent only while a tuple can be in time.

Instants and plain values in, plain values out. There is no socket, clock or thread. It also bounds how far apart the
clocks of two nodes are. Begin at sender.py and receiver.py. wire/frames.py turns the values into bytes. See
docs/explanation/links.md.
"""
