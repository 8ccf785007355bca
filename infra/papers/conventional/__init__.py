"""Conventional methods for distributed real-time systems beside [P]'s assignment and ours: future work in [P] 7.

These are holistic analysis, fixed priorities, and sub-deadlines by rules. They are written from the literature's
equations and share no code with coordinator.calculus. Begin at method_comparison.py, then holistic.py.
"""
