"""The least change within ranges that a user declares."""
