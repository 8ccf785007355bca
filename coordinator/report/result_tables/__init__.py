"""The tables of a report, as Parquet files for notebooks and SQL."""
