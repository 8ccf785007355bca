"""The default model, `sound`: placement and sub-deadlines such that every output's bound is within its deadline.

Of such plans it takes the least traffic, then the most slack ([P] section 5 with [Q]'s test in place of (6)). Begin at
search.py. impossible.py proves, without a search, what no plan can hold. See docs/explanation/sound.md.
"""
