"""A real agent to measure, plain and by TLS, and a bare socket to compare it with."""
