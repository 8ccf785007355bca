"""A run as it was recorded: its records as arrays, its plans as the ledgers need them, and what is missing or damaged.

Damage never stops a report: it becomes a sentence of problems.py, lacking.py or completeness.py. Begin at reader.py,
which reads a run directory. raw.py has its records as arrays, plan_view.py and merged_plans.py its plans.
"""
