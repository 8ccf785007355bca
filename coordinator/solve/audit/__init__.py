"""Every constraint of a plan checked again, without a solver."""
