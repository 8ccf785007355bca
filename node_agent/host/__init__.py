"""What the operating system gives an agent: clock, files, shared memory, the other processes' sockets, logs."""
