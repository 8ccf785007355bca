"""The engine: plans in, tuples in, task instances out. `Engine` is the only class that changes the state of a node.

Begin at engine.py: each public method is an event. ready_queue.py chooses what runs next, joins.py and window_ends.py
complete results, ledger.py writes facts, compiler.py and handover.py make a plan ready. events.py is the engine as one
function, for tests. See docs/explanation/engine.md.
"""
