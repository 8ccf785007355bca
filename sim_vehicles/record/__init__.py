"""Recordings of the blind crossing and of dense city traffic, made with SUMO. Replays need none."""
