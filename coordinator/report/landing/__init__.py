"""Traces as Parquet: landed once, with named columns, and sealed."""
