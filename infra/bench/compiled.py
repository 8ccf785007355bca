"""Engine, runtime and policies once more, with the hot path compiled in a copy of the repository."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

from infra.bench.figures import Figure
from infra.compiled import compiled_copy, run, why_not

NAMED = "compiled_"  # how the figures' names begin
GOALS = {"engine": 0.8, "runtime": 0.6}


def compiled() -> list[Figure]:
    """None where nothing can be compiled. Raises RuntimeError with what failed."""
    if why_not():
        return []
    with tempfile.TemporaryDirectory(prefix="shimekiri-compiled-") as folder:
        done = run(compiled_copy(Path(folder) / "copy"), ["-m", "infra.bench.engine"])
    if done.returncode:
        raise RuntimeError(done.stderr)
    made = [Figure(**each) for each in json.loads(done.stdout)]
    return [replace(each, name=NAMED + each.name, goal=GOALS.get(each.name)) for each in made]
