"""[Q]: deterministic QoS (QED, PQED)."""
