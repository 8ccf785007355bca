"""Runs with windows that no agent made: tuples end where windows collect them, windows are admitted by a source of
their own, some are abandoned or skipped, tuples are shed at the door, above a limit or too late, operators degrade."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from protos import records as rec
from tests.coordinator.report.synthetic import MS, Cluster, Lineage, Node, hashed, plan_document

Z, H = 50 * MS, 40 * MS
DOOR = (rec.POLICY_WINDOW_AWARE, rec.POLICY_FRONT, rec.POLICY_RANDOM, rec.POLICY_DROP_TAIL)


def with_windows(document: dict[str, Any], windows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A plan in which these operators collect and close: W.add's unit loses its exits, its node gets a source of W.add.

    windows: by operator W, what goes beyond kind time, Z and H into W.add's window.
    """
    ids = [source["id"] for node in document["nodes"].values() for source in node.get("sources", ())]
    found = {}
    for number, (name, window) in enumerate(windows.items(), start=max(ids) + 1):
        for at, node in document["nodes"].items():
            operators = {each["name"]: each for each in node.get("operators", ())}
            if f"{name}.add" not in operators:
                continue
            adds, closes = operators[f"{name}.add"], operators[name]
            adds["window"] = {"kind": "time", "length": str(Z), "hop": str(H), "source": number} | window
            closes["closes"] = adds["id"]
            for unit in node["units"]:
                if adds["id"] in unit["operators"]:
                    unit["exits"] = []
            source = {"id": number, "name": f"{name}.add", "stream": adds["output"], "window": adds["id"]}
            node.setdefault("sources", []).append(source)
            found[name] = {"add": f"{name}.add", "source": number, "at": at}
    document["graph"]["windows"] = found
    return hashed(document)


def overloaded() -> dict[str, Any]:
    """Two nodes: windows behind a filter and a link, beside an output of the same tuples; behind them a filter; their
    windows joined by lineage with themselves; windows by count of two streams."""
    document = plan_document(
        ["a", "b"],
        {"car": "a", "ego": "b"},
        [
            {"name": "keep", "at": "a", "in": ["car"], "mean": 0.8},
            {"name": "mean.add", "at": "b", "in": ["keep"]},
            {"name": "mean", "at": "b", "in": ["mean.add"]},
            {"name": "high", "at": "b", "in": ["mean"], "unit": "mean", "mean": 0.7},
            {"name": "left", "at": "b", "in": ["mean"]},
            {"name": "right", "at": "a", "in": ["mean"]},
            {"name": "both", "at": "b", "in": ["left", "right"], "join": True},
            {"name": "pairs.add", "at": "b", "in": ["keep", "ego"]},
            {"name": "pairs", "at": "b", "in": ["pairs.add"]},
        ],
        {
            "cars": ("keep", "a", 15 * MS), "means": ("high", "b", 25 * MS), "joined": ("both", "b", 60 * MS),
            "pairs": ("pairs", "a", 25 * MS),
        },
    )  # fmt: skip
    return with_windows(document, {"mean": {}, "pairs": {"kind": "count", "length": "5", "hop": "5"}})


class Windowed(Cluster):
    """`shedding`: how likely a tuple is shed at the door, above its limit, or its operator degraded."""

    def __init__(
        self, document: dict[str, Any], seed: int, mishaps: float = 0.1, many: float = 0.1, shedding: float = 0.2
    ) -> None:
        super().__init__(document, seed, mishaps, many)
        self.overload, self.shedding = random.Random(seed), shedding
        self.views = {view.path[-1]: view for view in self.plan.windows.values()}
        self.numbers: dict[int, int] = {}

    def sheds(self) -> bool:
        return self.overload.random() < self.shedding

    def admit(self, source: int) -> None:
        index, stream = self.plan.sources[source]
        node = self.nodes[index]
        if not self.sheds():
            return super().admit(source)
        seq = self.seqs[source] = self.seqs.get(source, 0) + 1
        node.now += self.random.randrange(MS)
        lineage = Lineage(source, node.boot, seq, 0, node.now, node.now)
        node.write(rec.ADMITTED, self.flags, source, lineage, node.now, lineage.lo, lineage.hi)
        policy = self.overload.choice((rec.POLICY_RATE, rec.POLICY_MEMORY))
        node.write(rec.SHED, self.flags, rec.NO_REF, lineage, node.now, policy, 0, stream)
        return self.absent(node, stream, lineage)

    def run(self, node: Node, unit: int, lineage: Lineage, release: int) -> None:
        view = self.views.get(unit)
        if view is not None and node is self.nodes[node.index] and self.sheds():
            policy = self.overload.choice(DOOR)
            node.write(rec.SHED, self.flags, unit, lineage, node.now, policy, lineage.ordinal)
            return
        if node is self.nodes[node.index] and self.sheds():
            operator = next(operator for of, operator in self.plan.before if of == unit)
            node.write(rec.DEGRADED, self.flags, unit, lineage, node.now, operator, lineage.ordinal)
        super().run(node, unit, lineage, release)
        if view is not None and node is self.nodes[node.index] and self.overload.random() < 0.5:
            self.window(node, view.source)

    def window(self, node: Node, source: int) -> None:
        """A window opens and closes, or is abandoned, or several are skipped."""
        view = self.plan.windows[source]
        (_, stream), number = self.plan.sources[source], self.numbers.get(source, 0)
        operator = view.operators[0]

        def fact(state: int, cause: int = 0, last: int = 0) -> Lineage:
            end = view.hop_ns * number + view.length_ns
            lineage = Lineage(source, node.boot, number, 0, node.now - 3 * MS, node.now - 3 * MS)
            node.write(
                rec.WINDOW, self.flags, operator, lineage, node.now, state, end - view.length_ns, end, cause, last=last
            )
            return lineage

        def admitted(lineage: Lineage) -> None:
            node.write(rec.ADMITTED, self.flags, source, lineage, node.now, lineage.lo, lineage.hi)

        if not self.sheds():
            fact(rec.WINDOW_OPENED)
            if not self.sheds():
                lineage = fact(rec.WINDOW_CLOSED, last=3)
                admitted(lineage)
                self.arrive(node, stream, lineage)
                self.numbers[source] = number + 1
                return
            state, count, cause = rec.WINDOW_ABANDONED, 1, self.overload.randrange(1, 8)
        else:
            state, count, cause = rec.WINDOW_SKIPPED, self.overload.randrange(1, 4), self.overload.randrange(2)
        lineage = fact(state, cause, number + count - 1)
        self.numbers[source] = number + count
        if cause in (0, rec.WINDOW_CAUSES.index("stopped")):  # on its way as the plan began or ended: in no ledger
            return
        for seq in range(number, number + count):
            each = Lineage(source, lineage.epoch, seq, 0, lineage.lo, lineage.hi)
            admitted(each)
            node.write(rec.SHED, self.flags, rec.NO_REF, each, node.now, rec.POLICY_WINDOW, 0, stream)
            self.absent(node, stream, each)


def play_windows(
    document: dict[str, Any], seed: int, tuples: int = 12, mishaps: float = 0.1, shedding: float = 0.2
) -> Windowed:
    """Admit tuples of the clients' sources and stop in order."""
    cluster = Windowed(document, seed, mishaps, 0.1, shedding)
    clients = sorted(set(cluster.plan.sources) - set(cluster.plan.windows))
    for _ in range(tuples):
        cluster.admit(cluster.random.choice(clients))
        if cluster.random.random() < 0.7:
            cluster.drain()
    cluster.drain()
    cluster.finish()
    return cluster


def write_missing(cluster: Cluster, root: Path) -> Iterator[tuple[Path, int]]:
    """Run directories, each without one of the records that run.json counts, and of which kind that is."""
    whole = cluster.save(root / "whole")
    said = (whole / "run.json").read_text()
    for node in cluster.all:
        records = list(node.records)
        for place, record in enumerate(records):
            node.records = records[:place] + records[place + 1 :]
            path = cluster.save(root / f"{node.name}{node.boot}-{place}")
            (path / "run.json").write_text(said)
            node.records = records
            yield path, record[0]


def as_earlier(path: Path) -> Path:
    """Make a run one of two plans: its own has become an earlier one, and the last one, which is alike, ran nothing."""
    document = json.loads((path / "plan.json").read_text())
    said = json.loads((path / "run.json").read_text())
    (path / "earlier").mkdir()
    (path / "earlier" / f"{document['hash']}.json").write_text(json.dumps(document))
    last = hashed(document | {"allocator": "sqpr"})
    (path / "plan.json").write_text(json.dumps(last))
    (path / "run.json").write_text(json.dumps(said | {"plan_hash": last["hash"], "earlier": [document["hash"]]}))
    return path
