"""A world for whole agents: clocks, disks, network and machines in one process, in virtual time.

Any call of a port can fail. Begin at virtual_time.py (processes that wait without waiting), then simulated_machine.py.
simulated_disk.py and simulated_network.py are the ports with most faults.
"""
