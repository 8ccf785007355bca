"""Worst-case end-to-end bounds before anything is deployed ([Q]: deterministic QoS by network calculus, corrected)."""
