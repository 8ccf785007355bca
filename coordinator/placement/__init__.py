"""Where each operator runs and how much of its end-to-end deadline it gets ([P] section 5)."""
