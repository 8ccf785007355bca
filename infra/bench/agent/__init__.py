"""A real agent to measure, and a bare socket to compare it with."""
