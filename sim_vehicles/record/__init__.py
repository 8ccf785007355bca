"""Makes the recordings of the blind crossing and of dense city traffic with SUMO.

Only this package needs SUMO; replays read what it wrote. Begin at write.py, one recording of the crossing from start to
end. sumo.py runs the simulator. street_recording.py and street_traffic.py make the streets.
"""
