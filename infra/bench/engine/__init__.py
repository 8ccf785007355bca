"""What a task instance costs in engine and runtime, and the floor below both."""
