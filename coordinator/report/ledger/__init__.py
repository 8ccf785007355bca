"""Ledgers of every tuple and window, in plain Python."""
