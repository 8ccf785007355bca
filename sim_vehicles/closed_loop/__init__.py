"""The closed loop: a warning makes the ego brake, and what is sent from then on follows its motion.

It is the same live and in virtual time. A lap's phase shifts all bursts, the geometry stays. The lineage epoch is the
trial. In virtual time tuples older than `max_age` are left out, as an agent refuses them. Begin at closed_loop.py, a
state machine without clock or socket. in_virtual_time.py hands its bursts to the virtual cluster. recorded.py has the
types of the laps in replay.json, replay_record.py makes them.
"""
