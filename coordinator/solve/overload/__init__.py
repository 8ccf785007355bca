"""Plans of more load than the nodes have time for (`--best-effort`): what is served in full, and what gives way.

Begin at overloaded.py. precedence.py orders outputs by deadline, served_shares.py has the shares of a placement that
can be served, giving_way.py the sub-deadlines. See docs/explanation/sound.md.
"""
