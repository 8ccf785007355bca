"""What a plan's sources get: bursts, their instants and ages, and whether plan and scene fit."""
