"""Engine, runtime, policies, tuples over TCP and hops once more, with the hot path compiled in a copy of the
repository.

`python -m infra.bench.compiled.compiled_path` measures what this Python imports, and prints the figures as JSON.
"""

import json
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from infra.bench.agent.cores import core_hop
from infra.bench.agent.hop import hop
from infra.bench.agent.tuple_cost import tuple_cost
from infra.bench.compiled.compiled_copy import compiled_copy, run, why_not
from infra.bench.engine.flatness import flatness
from infra.bench.engine.per_instance import per_instance
from infra.bench.engine.policies import policies
from infra.bench.figures import Figure

NAMED = "compiled_"  # how the figures' names begin
GOALS = {"engine": 0.8, "runtime": 0.6}


def compiled() -> list[Figure]:
    """None where nothing can be compiled. Raises RuntimeError with what failed."""
    if why_not():
        return []
    with tempfile.TemporaryDirectory(prefix="shimekiri-compiled-") as folder:
        done = run(compiled_copy(Path(folder) / "copy"), ["-m", "infra.bench.compiled.compiled_path"])
    if done.returncode:
        raise RuntimeError(done.stderr)
    made = [Figure(**each) for each in json.loads(done.stdout)]
    return [replace(each, name=NAMED + each.name, goal=GOALS.get(each.name, each.goal)) for each in made]


def main() -> int:
    """A list of figures on the standard output."""
    made = (*per_instance(), *policies(), *flatness(), *tuple_cost(), *hop(), *core_hop())
    print(json.dumps([asdict(each) for each in made]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
