"""From raw trace records to verdicts and ledgers: which deadlines were missed, and which hop spent the time.

Traces hold facts, verdicts exist only here. Begin at command.py, then verdict.py and ledger/ (plain Python, the
reference) beside spark/. report_document.py has the types of report.json, blame/ the causes, series/ the data of the
page's drawings. See docs/explanation/report.md.
"""
