"""The same on Spark."""
