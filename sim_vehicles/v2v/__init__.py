"""Vehicle to vehicle: when stations send, what the channel does to it, what the ego's radio makes of it."""
