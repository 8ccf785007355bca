"""What an agent tells Prometheus, and the small server that does."""
