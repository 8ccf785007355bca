"""Where an operator's cost comes from, when it is not simply what its query declares."""

GUESS_NS = 10**6
MEASURED, GUESSED, UNUSED = "measured", "guessed", "declared"  # where a cost is from; UNUSED: measured, but not this
