"""Input and output of solvers: items, streams, routes and capacities as integers."""
