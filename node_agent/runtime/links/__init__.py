"""Connections of one core: accepted ones, links to peers, sinks, and the punctuation that waits for a link."""
