"""[P]: placement, sub-deadlines and EDF."""
