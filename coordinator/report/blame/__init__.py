"""Why results were missed: facts in, causes out."""
