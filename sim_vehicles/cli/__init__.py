"""One file per command; each has `register(app)` and imports what is heavy only when its command runs."""
