"""Overload: what is shed, what is missed, and what that costs."""
