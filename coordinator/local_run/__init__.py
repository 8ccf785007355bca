"""`coordinator run` and `simulate`: a query tried on this machine in one go, and its outcome.

Agents, feeds and simulations are processes of their own. Begin at stages.py: from agents to verdict, in order.
run_outcome.py has what went wrong.
"""
