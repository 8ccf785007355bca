"""Cost of a task instance in engine and runtime, and the floor below both."""
