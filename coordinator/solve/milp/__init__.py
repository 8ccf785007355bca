"""The model of the placement paper as a mixed integer programme, and the baseline."""
