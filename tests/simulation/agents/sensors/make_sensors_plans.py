"""Makes the stored plans of the sensors: `python -m tests.simulation.agents.sensors.make_sensors_plans`."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from coordinator.model.choices import Choices
from coordinator.plan import plan_file
from coordinator.solve import planner
from node_agent.operators.registry import Registry
from tests.simulation.agents.sensors import sensors_operators
from tests.simulation.agents.street.make_plans import CLUSTER

QUERY = """shimekiri: 1
query: sensors
sources:
  s: {at: a, type: json, max_age: 400 ms, arrival: {burst: 60, period: 500 ms}}
  t: {at: b, type: json, max_age: 400 ms, arrival: {burst: 60, period: 500 ms}}
  image: {at: a, run: sensors.image, every: 250 ms, with: {every: 1}, max_age: 400 ms, max_size: 192 KiB, cost: 1 ms}
  scan: {at: b, run: sensors.image, every: 400 ms, offset: 30 ms, with: {every: 2}, max_age: 400 ms, max_size: 192 KiB, cost: 1 ms}
  left: {at: a, every: 100 ms}
  right: {at: c, every: 150 ms, offset: 20 ms}
operators:
  both:  {run: sensors.together, in: {image: image, scan: scan}, sync: {on: all, timeout: 600 ms}, max_size: 400 KiB, cost: 200 us, FUSED}
  look:  {run: sensors.look, in: both, cost: 200 us, LOOKED}
  beats: {run: sensors.beats, in: {first: left, second: right}, sync: {within: 40 ms, timeout: 200 ms}, cost: 50 us, BEATEN}
  near:  {run: sensors.attach, in: t, side: {image: {from: image, max_age: 2 s}}, cost: 100 us, nodes: [b]}
  far:   {run: sensors.mark, in: s, cost: 50 us, nodes: [b]}
outputs:
  fused: {from: look, at: c, deadline: 4 s}
  beats: {from: beats, at: b, deadline: 2 s}
  near:  {from: near, at: b, deadline: 2 s}
  far:   {from: far, at: b, deadline: 2 s}
"""  # noqa: E501 - a line per operator
PLACES = {
    "sensors_first": {"FUSED": "nodes: [b]", "LOOKED": "nodes: [c]", "BEATEN": "nodes: [b]"},
    "sensors_second": {"FUSED": "nodes: [c]", "LOOKED": "nodes: [a]", "BEATEN": "nodes: [c]"},
}


def main() -> None:
    """Beside the other plans of whole agents."""
    registry = Registry([Path(sensors_operators.__file__)])
    for name, places in PLACES.items():
        query = QUERY
        for word, held in places.items():
            query = query.replace(word, held)
        with TemporaryDirectory() as folder:
            for file, text in (("query.yaml", query), ("cluster.yaml", CLUSTER)):
                (Path(folder) / file).write_text(text)
            (Path(folder) / "operators.json").write_text(json.dumps(registry.describe()))
            made = planner.make_plan(Path(folder) / "query.yaml", Path(folder) / "cluster.yaml", Choices())
        plan_file.write(made, Path(__file__).parents[1] / "plans" / f"{name}.json")
        told = {output: claim.why for output, claim in made.guarantee.items()}
        print(name, made.hash[:8], dict(made.placement), told)


if __name__ == "__main__":
    main()
