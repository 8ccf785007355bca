"""The shapes of the files that a user writes."""
