"""`python -m tests.simulation.digests SEED...`: a digest of all records of these seeds of faults, as JSON.

A seed is a journal: the same events at the same instants, on any machine, compiled or not.
"""

import json
import sys

from node_agent.core import job_queues
from tests.simulation.faults.campaign import run

if __name__ == "__main__":
    outcomes = [run(int(each)) for each in sys.argv[1:]]
    assert not any(each.problems for each in outcomes), outcomes
    digests = {each.seed: each.digest for each in outcomes}
    print(json.dumps({"compiled": not job_queues.__file__.endswith(".py"), "digests": digests}))
