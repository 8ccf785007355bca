"""Clients of an agent for programs outside the cluster: `Source` and `Sink`, blocking, and `AsyncSource` for asyncio.

Begin at client.py. connection.py connects again and resends, address_book.py finds agents by addresses.json.
payloads.py makes tuples of arrays and tables, which columns.py knows by the shape of their objects.
"""
