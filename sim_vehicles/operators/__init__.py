"""The operators of the collision-warning query, one class each. See README.md for the table of all of them."""
