"""From counts to a `Report`, the contents of report.json: ratios, shares and words, the same for either engine.

Begin at assembly.py, the one place where report.json is put together. Each other file makes a part of it.
"""
