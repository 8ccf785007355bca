"""Threads of the runtime's process beside the scheduling one. They call the functions of sources.

Begin at caller_threads.py: why these are threads, and what they cost.
"""
