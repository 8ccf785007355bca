"""What operators are made of, how they are found, checked and called, and what their values may be."""
