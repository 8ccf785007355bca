"""Plans in sentences: what runs where and why, what it costs, what would mend it."""
