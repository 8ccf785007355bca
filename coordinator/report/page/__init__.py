"""A report for people: report.html, comparison.html, and tables on a terminal.

Figures come from `../summary`, so that page, terminal and report.json agree. Only terminal.py imports rich. Begin at
page.py, which puts sections/ together, and terminal.py. offered_tables.py and overload_tables.py have the rows of both,
verdict_sentences.py sentences, elements.py markup, page.js the plots. Tests drive Chromium where there is one.
"""
