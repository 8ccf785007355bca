"""The closed loop: a warning makes the ego brake, and the motion of the boxes says what came of it."""
