"""The smallest changes that make a query hold its deadlines."""
