"""Names of the two halves that a window operator is planned as."""

ADD = ".add"  # behind the name of a window operator: the part that collects tuples; no user's name has a dot
