"""A run as it was recorded: files, records, plans, what is lacking."""
