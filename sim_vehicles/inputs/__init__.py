"""Inputs of a plan's sources: bursts, their instants and ages, and whether plan and scene fit."""
