"""Clients of an agent for programs outside the cluster: `Source` and `Sink`, blocking, one thread each.

Begin at client.py. connection.py connects again and resends, address_book.py finds agents by addresses.json.
"""
