"""Arithmetic of arrival, demand and service curves ([Q], network calculus), in exact integers and fractions.

It knows no query and no plan, and needs no library. Begin at curves.py: arrival curves in the event domain. demand.py
tests EDF, response.py bounds response times. docs/explanation/guarantee.md has where the theorems are from.
"""
