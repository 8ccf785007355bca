"""How old the data behind a result may be, side inputs included, and how soon a change at a source shows.

Begin at judgement.py, then data_walk.py (the order), arrival_gaps.py, data_age.py and reaction.py (the rules).
side_limits.py has what would mend an age. See docs/explanation/age.md.
"""
