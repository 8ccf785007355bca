"""The smallest changes that make a query hold its deadlines. Each is found by planning again with it.

`coordinator explain` shows them, `coordinator adapt` writes one. Begin at repair_search.py: `find(case,
seconds=30).repairs`, smallest first. candidates.py has what is tried, within_ranges/ the least change within declared
ranges. See docs/explanation/repairs.md.
"""
