"""What a page draws of a run: its records as series over time, in a few passes and bounded."""
