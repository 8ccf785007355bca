"""Traces as Parquet: written once, as a stream, with named columns, and sealed with what they were made from.

It knows no plan. Large runs are read from here. Begin at landed_run.py, which lands a run and finds what was landed.
record_fields.py names the columns, seal.py has the contents of a seal, segment_files.py how segments are followed. Only
parquet_files.py and record_columns.py import pyarrow.
"""
