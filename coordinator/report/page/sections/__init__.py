"""The sections of the page, in the order in which it has them."""
