"""Bounds and placements from columns: what one node runs, as one variable of a linear programme."""
