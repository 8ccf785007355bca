"""How near the worst response that an adversary finds comes to its bound, on random plans of several nodes."""
