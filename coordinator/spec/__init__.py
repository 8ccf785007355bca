"""What a user asks for, as values: queries, clusters, operators, costs."""
