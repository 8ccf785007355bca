"""Scheduling policies beside one another on random workloads: `make bench-policies`."""
