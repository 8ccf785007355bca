"""A run's trace: one result followed backwards, its time stage by stage, the nodes' rows around it.

It draws nothing: `../page` does. Begin at stage_times.py, which defines the stages. lineage_trace.py follows the
tuples, run_trace.py reads the records, clocks.py maps instants between nodes.
"""
