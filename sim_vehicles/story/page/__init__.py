"""The page about a run: what it tells, as HTML, plots and a scene that plays."""
