"""How long tuples take over several units and links in one piece."""
