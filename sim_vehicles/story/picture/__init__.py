"""A picture that moves: the runs of one encounter as an SVG."""
