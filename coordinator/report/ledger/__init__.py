"""Ledgers in plain Python: every tuple and window that was admitted owes one end to each of its consumers.

`../spark` computes the same in columns, and tests compare the two: a change to one side belongs in both. Begin at
ledger.py, then reconciliation.py (what does not balance) and results.py (met, late, shed, lost, undecidable). See
docs/explanation/report.md.
"""
