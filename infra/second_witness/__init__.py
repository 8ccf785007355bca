"""A second witness for what a conflict is: commonroad-crime (TU Munich) on the same recordings as our truth.

It cannot live in the product's environment (it pins protobuf 3.20), so it runs in .venv-witness, in a process of its
own that is handed pairs of vehicles and gives back what its measures say. The two meet in the files of `pair_file`.
"""
