"""Making recordings of the blind crossing with SUMO. Only this package needs SUMO; replays read what it wrote."""
