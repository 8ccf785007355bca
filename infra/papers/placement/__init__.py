"""Figures and examples of the placement paper: [P].

Begin at collision_plans.py, which makes the plans. figure6.py, figure7.py and section41.py run them.
"""
