"""How long a report takes, by number of records and engine, on runs that are made for it."""
