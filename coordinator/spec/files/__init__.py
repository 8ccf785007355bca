"""The shapes of the files that a user writes, as pydantic models, and their JSON Schemas.

A check that needs more than the one file belongs in `../checks`. Begin at query_file.py and cluster_file.py.
yaml_source.py reads a file with its line numbers, validation.py words what is wrong in it, quantities.py has the types
of single values.
"""
