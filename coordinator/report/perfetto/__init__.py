"""A run as a time line for ui.perfetto.dev."""
