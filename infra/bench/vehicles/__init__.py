"""What the operators of the collision warning cost, and how often they are right. Begin at `collision_warning.py`."""
