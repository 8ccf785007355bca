"""[S]: shedding of aggregate queries."""
