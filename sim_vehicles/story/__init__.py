"""Story of a run, for people: the deciding tuple's time stage by stage, what the nodes did, and a page."""
