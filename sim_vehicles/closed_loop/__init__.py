"""The closed loop: a warning makes the ego brake, and what is sent from then on follows its motion."""
