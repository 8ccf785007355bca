"""From counts to the dict of report.json: ratios, shares and words, for either engine."""
