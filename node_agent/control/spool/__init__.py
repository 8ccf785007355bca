"""The trace spool: records that the coordinator has not collected yet, on disk."""
