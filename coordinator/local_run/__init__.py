"""A query tried on this machine in one go: which files, which feeds, the stages, and the account of it."""
