"""Threads beside the scheduling one."""
