"""Bytes to plain values and back. Every field is checked for range: nothing from the wire is trusted or unbounded.

Begin at frames.py, the frames of the data wire. plan_message.py makes a core plan of a local plan's message.
"""
