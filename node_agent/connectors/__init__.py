"""Connectors: what comes in from other systems and goes out to them, in a process beside the runtime."""
