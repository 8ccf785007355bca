"""Looking at agents while they run: one look, what changed between two, as text and live on a terminal."""
