"""Bounds of NLR, and placements, by column generation. A column is a schedule: the items of one node, in order.

Begin at generation.py, the loop. laxity_shares.py has what a demand bound costs, pricing.py a node's best schedule at
given prices, lagrangian.py the bound at any multipliers, schedule_master.py the programme that finds them. See
docs/explanation/placement.md.
"""
