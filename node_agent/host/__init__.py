"""The operating system as an agent sees it: clock, files, shared memory, the other processes' sockets, logs."""
