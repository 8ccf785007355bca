"""Recorded floating-car data and scenes that come with the package (see the room's README for how they were made)."""
