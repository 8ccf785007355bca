"""Chaos: three agents in network namespaces, real faults, and an independent recount of every tuple after each.

Begin at campaign.py. faults.py has the faults, recount.py the demands on the traces. The recount trusts the client's
own stamps. What a disk loses is tested in tests/durability.
"""
