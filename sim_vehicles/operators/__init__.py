"""The operators of the collision-warning query, one class each. See README.md for the table of all of them."""

import os

# Before any of them loads numpy: threads cost more than matrices of 5 x 5, and a node's cores have other work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
