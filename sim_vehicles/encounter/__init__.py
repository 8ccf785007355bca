"""An ego and a crossing vehicle: how the ego brakes, whether the two touch, and the verdict.

Begin at verdict.py (the judge), meeting.py (contact, which tests compare with brute force) and physics.py (the law of
braking). See docs/reference/sim_vehicles.md#the-verdict.
"""
