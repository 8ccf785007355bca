"""Metrics for Prometheus, and the small server that exposes them."""
