"""Inputs of a plan's sources: bursts, their instants and ages, and whether plan and scene fit.

Begin at stimuli.py, the whole input of a replay. send_schedule.py puts it in order.
"""
