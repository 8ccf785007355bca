"""Metrics for Prometheus, and the small HTTP server that exposes them.

Begin at scrape.py, which asks. sampling.py makes samples of the answers (pure), exposition.py writes the text,
http_server.py serves it. See docs/reference/metrics.md.
"""
