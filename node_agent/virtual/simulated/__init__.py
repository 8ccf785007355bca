"""A world for the runtime as it is: clocks, network and machines of a cluster in one process, in virtual time."""
