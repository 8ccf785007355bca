"""Types of payloads: what a codec is, and those that are not parsed."""
