"""Reproductions of the papers' figures and tables: our numbers beside the printed ones (`make papers`)."""
