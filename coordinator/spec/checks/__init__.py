"""A query and a cluster checked against each other, before anything is planned."""
