"""Making recordings of the blind crossing and of dense city traffic with SUMO.

Only this package needs SUMO; replays read what it wrote.
"""
