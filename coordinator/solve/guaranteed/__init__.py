"""Placement and sub-deadlines such that every output is guaranteed ([P] section 5 with [Q]'s test in place of (6))."""
