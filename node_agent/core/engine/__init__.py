"""The engine: plans in, tuples in, task instances out; and the components that it has."""
