"""What the operators compute with: motion models, lanes, corridors, ITS time."""
