"""Search and bounds for problems that are too large for the whole model."""
