"""Vehicles in a scene: their motion, who sees whom, and what is sensed and said."""
