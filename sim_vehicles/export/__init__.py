"""A replay as a file for other programs: MCAP, which Foxglove opens."""
