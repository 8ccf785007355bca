"""Benchmarks, checks and deployment."""
