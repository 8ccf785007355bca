"""The tables of a report, as Parquet files in `RUN/tables` for notebooks and SQL.

Begin at table_columns.py: each table with its columns. docs/reference/report_tables.md is made from it. report_rows.py
fills most tables from a `Report`, unit_rows.py reads the landed records, result_rows.py takes each result from the
plain-Python engine (Spark writes its own), write_tables.py writes them.
"""
