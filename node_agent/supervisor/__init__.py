"""The parent process of an agent: it starts the others, watches them and puts an end to what hangs."""
