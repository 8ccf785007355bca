"""Engine and live runtime, per task instance, against the bare heap loop in the same process and run."""

import gc

from infra.bench.engine.floor import floor_ns
from infra.bench.engine.instance_cost import engine_ns
from infra.bench.engine.runtime_loop import chained_runtime, runtime_ns
from infra.bench.figures import Figure, paired_ratio

INSTANCES = 21_000
REPETITIONS = 61


def per_instance() -> list[Figure]:
    """Engine and runtime against the bare heap loop."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        engine, floor = paired_ratio(lambda: engine_ns(INSTANCES), lambda: floor_ns(INSTANCES), REPETITIONS)
        with chained_runtime() as runtime:
            rounds = INSTANCES // 2100
            live, _ = paired_ratio(lambda: runtime_ns(runtime, rounds), lambda: floor_ns(INSTANCES), REPETITIONS)
    finally:
        gc.enable()
        gc.unfreeze()
    how = f"median of {REPETITIONS} alternating pairs of {INSTANCES} instances each, gc off"
    return [
        Figure("floor", floor, "ns per instance", None, f"bare heap loop; {how}"),
        Figure("engine", engine, "x floor", 2.0, f"engine, no-op operators, packed trace; {how}"),
        Figure("runtime", live, "x floor", 2.5, f"the live runtime's loop, same operators; {how}"),
    ]
