"""The parts of plan.json, a file for each; `plan_document` is the whole. Checks of a query load what it may declare."""
