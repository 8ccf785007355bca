"""Random queries with windows and limits whose plans are analysed, and sources that are as dense as they may be."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from coordinator.calculus.curves import Spanned
from coordinator.errors import InfeasibleError, OutOfTimeError
from coordinator.guarantee.system import arrival_curve
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.solve import planner
from coordinator.spec.runtime_charges import NOTHING
from node_agent.virtual.world import Admission, Delivery, Offer
from protos.plan_document import Plan
from tests.simulation.guarantees.edf_node import instants
from tests.simulation.windows.window_queries import registry

MS = 1_000_000
LEAD_NS, LENGTH_NS = 500 * MS, 900 * MS  # windows have begun before the first tuple; what the sources take
SHEDDERS = ("none", "none", "none", "drop-tail", "window-aware", "front", "random")


@dataclass
class Case:
    """A query and a cluster as text. `source`: name to (arrival as in the file, greatest age in ms, limited)."""

    draw: Random
    nodes: str = "a"
    shed: str = "none"
    lines: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def query(self) -> str:
        """query.yaml."""
        draw = self.draw
        self.nodes, self.shed = draw.choice(["a", "ab", "ab", "abc"]), draw.choice(SHEDDERS)
        self.lines = ["shimekiri: 1", "query: windows", "sources:"]
        streams = [self._source(f"s{number}") for number in range(draw.randint(1, 3))]
        self.lines.append("operators:")
        streams = [self._before(name) for name in streams]
        if len(streams) > 1 and draw.random() < 0.3:
            cost_us = draw.randint(50, 1500)
            self.lines.append(f"  both: {{run: union, in: [{streams[0]}, {streams[1]}], cost: {cost_us} us}}")
            streams[:2] = ["both"]
        for number in range(draw.randint(1, 3)):
            self._window(f"W{number}", streams)
        if draw.random() < 0.5:  # a tight one beside the windows
            cost_us, deadline_ms = draw.randint(100, 2000), draw.choice([100, 150])
            self.lines.append(f"  beside: {{run: pass, in: {streams[-1]}, cost: {cost_us} us}}")
            self.outputs.append(f"  out: {{from: beside, at: {self._node()}, deadline: {deadline_ms} ms}}")
        read = " ".join(self.lines)
        for name in streams:
            if f"[{name}" not in read and f", {name}]" not in read and f"in: {name}," not in read:
                self.lines.append(f"  P{name}: {{run: pass, in: {name}, cost: 100 us}}")
                self.outputs.append(f"  o{name}: {{from: P{name}, at: {self._node()}, deadline: 200 ms}}")
        if "window: {count" in read or "on_late: deliver" in read:  # nothing is ever too late for those
            self.lines = [line.replace(", on_late: drop", "") for line in self.lines]
        return "\n".join([*self.lines, "outputs:", *self.outputs]) + "\n"

    def cluster(self) -> str:
        """cluster.yaml."""
        lines = ["shimekiri: 1", "nodes:"]
        for number, name in enumerate(self.nodes):
            emulated = ", emulate: {cost_per_tuple: 100 us}" if self.draw.random() < 0.3 else ""
            lines.append(f'  {name}: {{address: "127.0.0.1:77{number}0", memory: 64 MiB, cap: 1{emulated}}}')
        pairs = [(a, b) for a in self.nodes for b in self.nodes if a < b]
        lines.append("links:" if pairs else "links: []")
        # Bounds take a tuple to be of a frame at most, which all pairs of a window may exceed.
        width = "" if "run: join" in " ".join(self.lines) else ", bandwidth: 20 Mbit/s"
        lines += [f"  - {{between: [{a}, {b}], latency: 2 ms{width}}}" for a, b in pairs]
        return "\n".join([*lines, "operators: operators.json", "security: insecure-loopback"]) + "\n"

    def _node(self) -> str:
        return self.draw.choice(self.nodes)

    def _source(self, name: str) -> str:
        draw = self.draw
        period_ms = draw.choice([4, 9, 15, 30])
        burst = draw.randint(1, 4)
        arrival = draw.choice(
            [
                f"{{burst: {burst}, period: {burst * period_ms} ms}}",
                f"{{jcp: {{period: {period_ms} ms, min_gap: {draw.randint(0, period_ms - 1)} ms, early: 0 ms, "
                f"late: {draw.randint(0, 3 * period_ms)} ms}}}}",
            ]
        )
        limit = f", max_rate: {{tuples: {draw.randint(2, 9)}, per: 60 ms}}" if draw.random() < 0.35 else ""
        value = ", value: v" if limit and draw.random() < 0.5 else ""
        self.lines.append(
            f"  {name}: {{at: {self._node()}, type: json, max_age: {draw.choice([5, 20, 60])} ms, arrival: {arrival}"
            f"{limit}{value}}}"
        )
        return name

    def _before(self, name: str) -> str:
        draw = self.draw
        kind = draw.choice(["", "", "pass", "test.some"])
        if not kind:
            return name
        more = ", with: {of: 3, but: 1}, selectivity: {mean: 0.67}" if kind == "test.some" else ""
        if draw.random() < 0.2:
            more += ", on_late: drop"
        self.lines.append(f"  F{name}: {{run: {kind}, in: {name}, cost: {draw.randint(50, 1500)} us{more}}}")
        return f"F{name}"

    def _window(self, name: str, streams: Sequence[str]) -> None:
        draw = self.draw
        kind = draw.choice(["time", "time", "time", "count", "sized", "join"])
        singles = [each for each in streams if each != "both"]
        several = kind == "time" and len(streams) > 1 and draw.random() < 0.5
        read = list(streams) if several else [draw.choice(list(streams))]
        if kind == "join" and len(streams) < 2:
            kind = "time"
        if kind in ("count", "sized") and not singles:
            kind = "time"
        elif kind in ("count", "sized"):
            read = [draw.choice(singles)]
        if kind == "join":
            read = list(streams[:2])
        hop = draw.randint(1, 9) if kind == "count" else 10 * draw.randint(3, 15)
        length = hop * draw.randint(1, 3)
        text = f"count: {length}, hop: {hop}" if kind == "count" else f"time: {length} ms, hop: {hop} ms"
        if kind == "sized":
            text = f"size: test.size, most: {length} ms, hop: {hop} ms"
        if kind != "count":
            text += f", lateness: {draw.choice([0, 10, 60])} ms"
        first = draw.random() < 0.25
        shed = "none" if kind == "count" and self.shed == "window-aware" else self.shed
        text += f", shed: {shed}, queue: {draw.choice([20, 3000])}, wait: {draw.choice([100, 1000])} ms"
        text += f", close: {draw.randint(100, 5000)} us" + (", deadline: first" if first else "")
        text += ", by: k" if kind != "join" and draw.random() < 0.3 else ""
        run = "run: join, on: k" if kind == "join" else "run: aggregate, with: {n: count, v: sum}"
        inputs = ", ".join(read)
        late = ", on_late: deliver" if draw.random() < 0.3 else ""
        cost_us = draw.randint(20, 600)
        self.lines.append(f"  {name}: {{{run}, in: [{inputs}], cost: {cost_us} us, window: {{{text}}}{late}}}")
        end = name
        if draw.random() < 0.4:
            degrade = ", on_late: {degrade: {run: pass, cost: 20 us}}" if draw.random() < 0.3 else ""
            self.lines.append(f"  A{name}: {{run: pass, in: {name}, cost: {draw.randint(50, 3000)} us{degrade}}}")
            end = f"A{name}"
        deadline_ms = draw.choice([700, 900]) if first else draw.choice([150, 250, 400, 900])
        self.outputs.append(f"  out_{name}: {{from: {end}, at: {self._node()}, deadline: {deadline_ms} ms}}")


def case(seed: int) -> tuple[str, str]:
    """query.yaml and cluster.yaml of a seed."""
    made = Case(Random(seed))
    return made.query(), made.cluster()


def planned(query: str, cluster: str, sound: bool) -> Plan | None:
    """The plan; None: there is none. sound: of that model, policed, guaranteed or the best there is."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "query.yaml").write_text(query)
        (folder / "cluster.yaml").write_text(cluster)
        (folder / "operators.json").write_text(json.dumps(registry().describe()))
        if sound:
            limits = Limits(seconds=0.3)
            choices = Choices(model="sound", charges=NOTHING, limits=limits, best_effort=True, quick=True)
        else:
            choices = Choices(allocator="sqpr", sub_deadlines="proportional", policy="edf", charges=NOTHING)
        try:
            return planner.make_plan(folder / "query.yaml", folder / "cluster.yaml", choices)
        except (InfeasibleError, OutOfTimeError):
            return None


@dataclass
class Dense:
    """A world: every source as dense and as old as it may be, or a little less so. `flood`: a source that sends three
    times what it declared."""

    plan: Plan
    seed: int
    flood: str = ""
    delivered: list[Delivery] = field(default_factory=list)

    def begin(self, trial: int) -> Sequence[Admission]:
        """Everything at once."""
        draw, found = Random(f"{self.seed} {trial}"), []
        together = draw.random() < 0.5
        for name, source in self.plan.graph.sources.items():
            curve = arrival_curve(source.arrival)
            assert isinstance(curve, Spanned)
            slack = (lambda: 0) if draw.random() < 0.6 else (lambda: draw.choice([0, 0, 0, draw.randint(0, 40 * MS)]))
            first_ns = LEAD_NS if together else LEAD_NS + draw.randint(0, 60) * MS
            aged = draw.choice([lambda: 1.0, draw.random])
            for at_ns in instants(curve.span, LENGTH_NS, slack):
                for _ in range(3 if name == self.flood else 1):
                    payload = {
                        "v": draw.randint(-20, 20), "k": draw.choice(["x", "y", 7]), "size": draw.randint(1, 200) * MS
                    }  # fmt: skip
                    age_ns = int(source.max_age_ns * aged())
                    found.append(Admission(first_ns + at_ns, name, (Offer(payload, age_ns),)))
        return found

    def offer(self, source: str, seq: int, at_ns: int) -> None:
        """Never asked."""

    def deliver(self, delivery: Delivery) -> None:
        """Kept."""
        self.delivered.append(delivery)
