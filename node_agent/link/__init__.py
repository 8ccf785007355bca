"""Pure state machines of the data links: instants and plain values in, plain values out; no socket, clock or thread."""
