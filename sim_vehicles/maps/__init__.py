"""Road maps: the lanes of files that others make, and our own JSON. Begin at `map_formats.py`."""
