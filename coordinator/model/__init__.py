"""What solvers take and give: items, streams, routes and capacities as integers."""
