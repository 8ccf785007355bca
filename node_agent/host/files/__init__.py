"""Files of the state directory: durable writes, local plans, the reserve, the count of starts."""
