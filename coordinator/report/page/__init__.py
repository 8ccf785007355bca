"""A report on a page and on a terminal."""
