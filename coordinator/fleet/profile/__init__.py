"""Costs that agents measure, and the costs.yaml that holds them."""
