"""[A]: batching (ATS)."""
