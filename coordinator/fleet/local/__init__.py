"""Agents on this machine: started, started again, found."""
