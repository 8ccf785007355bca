"""Runs that no agent made: a plan from a few lines, and traces that obey the ledger rules, with seeded mishaps."""

import json
import random
import shutil
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from coordinator.report.facts.plan_view import OUTPUT, PEER, SIDE, PlanView, consumer_parts, read_plan
from protos import plan_document as plans
from protos import records as rec
from protos.plan_pb2 import LocalPlan, Operator, Output, Peer, Policy, Send, Side, Source, Stream, Unit
from tests import traces
from tests.whole_plans import whole

MS = 1_000_000
DECISION_NS = 20_000
Op = dict[
    str, Any
]  # {"name", "at", "in": [..], "side": [..], "join": bool, "mean": float, "unit": name of the unit's first}


def plan_document(
    nodes: list[str], sources: dict[str, str], ops: list[Op], outputs: dict[str, tuple[str, str, int]]
) -> dict[str, Any]:
    """plan.json as the planner would write it, as far as the report reads it. outputs: name -> (from, at, deadline)."""
    index = {name: number for number, name in enumerate(nodes)}
    streams = {name: number for number, name in enumerate([*sources, *(op["name"] for op in ops)], start=1)}
    made_at = sources | {op["name"]: op["at"] for op in ops}
    local = {
        name: LocalPlan(version=1, query="q", node=name, index=index[name], policy=Policy(name="edf", largest_batch=1))
        for name in nodes
    }
    used: dict[str, set[str]] = {name: set() for name in nodes}
    sends: set[tuple[str, str]] = set()

    def use(node: str, stream: str) -> None:
        used[node].add(stream)
        if made_at[stream] != node:
            sends.add((stream, node))
            used[made_at[stream]].add(stream)

    for number, (name, at) in enumerate(sources.items(), start=1):
        local[at].sources.append(Source(id=number, name=name, stream=streams[name]))
        used[at].add(name)
    chains: dict[str, list[Op]] = {}
    for number, op in enumerate(ops, start=1):
        op["id"] = number
        chains.setdefault(str(op.get("unit", op["name"])), []).append(op)
        local[op["at"]].operators.append(
            Operator(
                id=number,
                name=op["name"],
                run="pass",
                cost_ns=MS,
                inputs=[streams[s] for s in op["in"]],
                sides=[Side(port=f"p{i}", stream=streams[s]) for i, s in enumerate(op.get("side", []))],
                output=streams[op["name"]],
                join=op.get("join", False),
            )
        )
        used[op["at"]].add(op["name"])
        for stream in (*op["in"], *op.get("side", [])):
            use(op["at"], stream)
    for number, (name, (from_, at, deadline)) in enumerate(outputs.items(), start=1):
        local[at].outputs.append(Output(id=number, name=name, stream=streams[from_], deadline_ns=deadline))
        use(at, from_)
    for stream, node in sorted(sends):
        local[made_at[stream]].sends.append(Send(stream=streams[stream], peer=index[node]))
    for number, chain in enumerate(chains.values(), start=1):
        inner = {(b["name"], a["name"]) for a, b in pairwise(chain)}
        exits = []
        for op in chain:
            users = [o for o in ops if op["name"] in o["in"] and (o["name"], op["name"]) not in inner]
            sides = [o for o in ops if op["name"] in o.get("side", [])]
            if users or sides or any(f == op["name"] for f, _, _ in outputs.values()):
                exits.append(streams[op["name"]])
        local[chain[0]["at"]].units.append(
            Unit(
                id=number,
                operators=[op["id"] for op in chain],
                exits=exits,
                sub_deadline_ns=5 * MS,
                deadline_ns=50 * MS,
            )
        )
    for name in nodes:
        local[name].streams.extend(Stream(id=streams[s], name=s, codec="json") for s in sorted(used[name]))
        local[name].peers.extend(Peer(index=index[p], name=p) for p in nodes if p != name)
    document: dict[str, Any] = {
        "shimekiri": 1,
        "query": "q",
        "status": "optimal",
        "allocator": "deadline",
        "model": "paper",
        "units": "path",
        "placement": {op["name"]: op["at"] for op in ops},
        "graph": {
            "operators": {
                op["name"]: {
                    "id": op["id"],
                    "selectivity": {"mean": op["mean"], "at_most": []} if "mean" in op else None,
                }
                for op in ops
            }
        },
        "guarantee": {
            name: {"bound_ns": deadline // 2 if number % 2 else None}
            for number, (name, (_, _, deadline)) in enumerate(outputs.items(), start=1)
        },
        "analysis": {"charges": {"decision_ns": DECISION_NS}},
        "cluster": {"nodes": {name: {"index": index[name], "speed": 1.0} for name in nodes}},
        "nodes": {
            name: json_format.MessageToDict(plan, preserving_proto_field_name=True) for name, plan in local.items()
        },
    }
    return hashed(document)


def hashed(document: dict[str, Any]) -> dict[str, Any]:
    """A whole plan with its hash."""
    return whole({key: value for key, value in document.items() if key != "hash"})


@dataclass
class Lineage:
    source: int
    epoch: int
    seq: int
    ordinal: int
    lo: int
    hi: int

    def child(self, ordinal: int) -> "Lineage":
        return Lineage(self.source, self.epoch, self.seq, ordinal, self.lo, self.hi)


@dataclass
class Node:
    """One incarnation of a node's runtime, writing facts."""

    name: str
    index: int
    boot: int
    clock: str
    now: int = 0
    records: list[bytes] = field(default_factory=list)
    joins: dict[tuple[int, ...], dict[int, Lineage | None]] = field(default_factory=dict)
    ended: bool = False
    crashed: bool = False
    reachable: bool = True
    count_known: bool = True

    def write(self, kind: int, flags: int, ref: int, lineage: Lineage | None, *words: int, last: int = 0) -> None:
        source, epoch, seq = (lineage.source, lineage.epoch, lineage.seq) if lineage else (0, 0, 0)
        w = (*words, 0, 0, 0, 0, 0)[:5]
        self.records.append(rec.RECORD.pack(kind, flags, ref, source, epoch, seq, *w, last))

    def in_order(self) -> None:
        """Put what was written without regard to time into the order of its instants."""
        self.records.sort(key=_written_ns)


def _written_ns(packed: bytes) -> int:
    record = rec.unpack_record(packed)
    return record.end_ns if isinstance(record, rec.Ran) else record.at_ns


class Cluster:
    """Runs tuples through a plan, one event at a time; `mishaps` is the probability of each kind of trouble, `policed`
    that an admission, or results of an instance, are beyond what was declared, or that tuples before it are refused."""

    def __init__(
        self, document: dict[str, Any], seed: int, mishaps: float = 0.1, many: float = 0.1, policed: float = 0.0
    ) -> None:
        self.document, self.random = hashed(document), random.Random(seed)
        self.plan: PlanView = read_plan(plans.of(self.document))
        self.mishaps, self.many, self.policed = mishaps, many, policed
        self.policing, self.refusing = random.Random(seed), random.Random(seed)
        self.refused: dict[tuple[int, int], int] = {}
        self.flags = 3
        self.nodes = {n: self._start(n, 1) for n in self.plan.nodes}
        self.all = list(self.nodes.values())
        self.events: deque[tuple[Any, ...]] = deque()
        self.seqs: dict[int, int] = {}
        self.link_seq = 0

    def _start(self, index: int, boot: int) -> Node:
        clock = f"clock{index if self.random.random() < 0.3 else 0}"
        node = Node(self.plan.nodes[index], index, boot, clock)
        for state in (rec.STATE_PREPARED, rec.STATE_COMMITTED):
            node.write(rec.PLAN, 0, state, None, node.now, 131, last=self.plan.hash_u64)
        for peer in self.plan.nodes:  # each clock shows the same
            node.write(rec.CLOCK, self.flags, peer, None)
        node.write(rec.PLAN, 0, rec.STATE_COMMITTED, None, node.now, 9, last=77)
        node.write(rec.ADMITTED, 9, 1, Lineage(1, 40, 1, 0, 0, 0), 5, 0, 0)  # of another plan
        return node

    def chance(self, share: float = 1.0) -> bool:
        return self.random.random() < self.mishaps * share

    def admit(self, source: int) -> None:
        index, stream = self.plan.sources[source]
        node = self.nodes[index]
        seq = self.seqs[source] = self.seqs.get(source, 0) + 1
        node.now += self.random.randrange(3 * MS)
        if self.refusing.random() < self.policed:
            reason = self.refusing.randrange(1, len(rec.REASONS))
            self.refuse(source, self.refusing.randrange(1, 4), reason, self.refusing.randrange(30 * MS))
        age = self.random.randrange(20 * MS)
        blur = self.random.choice((0, 0, 2 * MS, 1 << 63)) if self.chance() else 0
        lo = max(node.now - age - blur, -(1 << 63))
        lineage = Lineage(source, node.boot, seq, 0, lo, node.now - age)
        node.write(rec.ADMITTED, self.flags, source, lineage, node.now, lineage.lo, lineage.hi, last=44)
        if self.policing.random() < self.policed:
            node.write(rec.SHED, self.flags, rec.NO_REF, lineage, node.now, rec.POLICY_ARRIVALS, 0, stream)
            self.absent(node, stream, lineage)
            return
        self.arrive(node, stream, lineage)

    def refuse(self, source: int, count: int, reason: int = rec.REASON_TOO_OLD, age: int = 0, since: int = 0) -> None:
        """So many at the source's node, of that age, the first of them so long ago."""
        node = self.nodes[self.plan.sources[source][0]]
        number = self.refused.get((source, node.boot), 0)
        self.refused[source, node.boot] = number + count
        lineage = Lineage(source, node.boot, number, 0, 0, 0)
        node.write(
            rec.REFUSED, self.flags, source, lineage, node.now, reason, count, age, age, last=max(0, node.now - since)
        )

    def arrive(self, node: Node, stream: int, lineage: Lineage) -> None:
        if self.chance(0.2):
            node.write(
                rec.LOST, self.flags, rec.NO_REF, lineage, node.now, rec.CAUSE_QUEUE_FULL, lineage.ordinal, stream
            )
            self.absent(node, stream, lineage)
            return
        for consumer in self.plan.consumers.get((node.index, stream), ()):
            kind, ref, _ = consumer_parts(consumer)
            if kind == SIDE:
                node.write(rec.ABSORBED, self.flags, ref, lineage, node.now, stream, lineage.ordinal)
            elif kind == OUTPUT:
                deadline = self.plan.outputs[ref].deadline_ns
                node.write(
                    rec.OUTPUT, self.flags, ref, lineage, node.now, lineage.lo, lineage.hi, deadline, lineage.ordinal
                )
            elif kind == PEER:
                self.send(node, ref, stream, lineage)
            elif self.plan.units[ref].join:
                self.join(node, ref, stream, lineage, lineage)
            else:
                self.events.append(("run", node, ref, lineage, node.now))

    def absent(self, node: Node, stream: int, lineage: Lineage) -> None:
        for consumer in self.plan.consumers.get((node.index, stream), ()):
            kind, ref, _ = consumer_parts(consumer)
            if kind == PEER:
                self.absent(self.nodes[ref], stream, lineage)
            elif kind not in (SIDE, OUTPUT):
                if self.plan.units[ref].join:
                    self.join(node, ref, stream, lineage, None)
                else:
                    for exit_ in self.plan.units[ref].exits:
                        self.absent(node, exit_, lineage)

    def join(self, node: Node, unit: int, stream: int, lineage: Lineage, value: Lineage | None) -> None:
        if node is not self.nodes[node.index]:
            return
        key = (unit, lineage.source, lineage.epoch, lineage.seq, lineage.ordinal)
        waiting = node.joins.setdefault(key, {})
        if waiting.get(stream) is not None:  # a union upstream gave this port the same lineage twice
            earlier = waiting[stream]
            node.write(rec.LOST, self.flags, unit, earlier, node.now, rec.CAUSE_JOIN_EXPIRED, lineage.ordinal)
        waiting[stream] = value
        if len(waiting) < len(self.plan.units[unit].inputs):
            return
        del node.joins[key]
        present = [each for each in waiting.values() if each is not None]
        absent = len(present) < len(waiting)
        for each in present if absent else present[1:]:
            node.write(
                rec.MERGED,
                self.flags,
                unit,
                each,
                node.now,
                each.source,
                each.epoch,
                each.ordinal,
                int(absent),
                last=each.seq,
            )
        if absent:
            for exit_ in self.plan.units[unit].exits:
                self.absent(node, exit_, lineage)
        else:
            self.events.append(("run", node, unit, present[0], node.now))

    def send(self, node: Node, peer: int, stream: int, lineage: Lineage) -> None:
        self.link_seq += 1
        if self.chance(0.3):
            node.write(
                rec.LOST, self.flags | rec.FLAG, peer, lineage, node.now, rec.CAUSE_LINK_FULL, lineage.ordinal, stream
            )
            return
        node.write(rec.SENT, self.flags, peer, lineage, node.now, self.link_seq, stream, lineage.ordinal)
        if self.chance(0.3):
            node.write(rec.GAVE_UP, self.flags, peer, lineage, node.now, self.link_seq, stream, lineage.ordinal)
            return
        self.events.append(("receive", node, peer, stream, lineage, node.now, self.link_seq))

    def receive(self, sender: Node, peer: int, stream: int, lineage: Lineage, sent: int, link_seq: int) -> None:
        node = self.nodes[peer]
        node.now = max(node.now, sent) + self.random.randrange(1, 2 * MS)
        node.write(rec.RECEIVED, self.flags, sender.index, lineage, node.now, link_seq, sent, stream, lineage.ordinal)
        if self.chance(0.1):
            node.write(rec.LOAD, 0, 0, None, node.now, 10, 1, 5, 6, last=len(node.records))
        self.arrive(node, stream, lineage)

    def run(self, node: Node, unit: int, lineage: Lineage, release: int) -> None:
        if node is not self.nodes[node.index]:
            return  # that incarnation is gone, and its queue with it
        exits = self.plan.units[unit].exits
        start = node.now = max(node.now, release) + self.random.randrange(MS)
        if self.chance(0.5):
            node.write(rec.SHED, self.flags, unit, lineage, start, rec.POLICY_LATE, lineage.ordinal)
            for stream in exits:
                self.absent(node, stream, lineage)
            return
        outs = [self.outputs(unit, e, lineage) for e in range(len(exits))]
        fails, crash = self.chance(0.5), self.chance(0.1)
        done = self.random.randrange(max(1, len(exits))) if fails or crash else len(exits)
        sliced = self.chance(0.5) and done > 0
        if not exits:
            node.now += self.random.randrange(MS)
        word = 0
        for e in range(done):
            node.now += self.random.randrange(MS)
            word |= len(outs[e]) << (8 * e)
            for child in outs[e]:
                self.arrive(node, exits[e], child)
            if not outs[e]:
                self.absent(node, exits[e], lineage)
            if sliced and e == 0:
                last = lineage.ordinal << 32 | word
                node.write(
                    rec.RAN, self.flags | rec.FLAG, unit, lineage, release, start, node.now, release + MS, 0, last=last
                )
                start, word = node.now, 0
        shed = self.shed_results(node, unit, lineage, sum(1 << e for e in range(done) if outs[e]))
        if crash:
            self.crash(node)
        elif fails:
            node.write(
                rec.LOST,
                self.flags,
                unit,
                lineage,
                node.now,
                rec.CAUSE_OPERATOR_ERROR,
                lineage.ordinal,
                shed,
                start,
                last=word,
            )
            for stream in exits[done:]:
                self.absent(node, stream, lineage)
        else:
            node.write(
                rec.RAN,
                self.flags,
                unit,
                lineage,
                release,
                start,
                node.now,
                release + MS,
                rec.beside_decision(shed),
                last=lineage.ordinal << 32 | word,
            )

    def shed_results(self, node: Node, unit: int, lineage: Lineage, given: int) -> int:
        """Beside what the exits gave (a bit set); how many there were."""
        if self.policing.random() >= self.policed:
            return 0
        operators = [
            operator for (of, operator), exits in self.plan.through.items() if of == unit and not exits & ~given
        ]
        children = [lineage.child(lineage.ordinal * 256 + i) for i in (5, 6, 7)] if lineage.ordinal < 1 << 24 else []
        shed = self.policing.choice([[lineage], children or [lineage], children[1:2] or [lineage]])
        for each in shed:
            operator = self.policing.choice([*operators, 999])
            late = operator != 999 and node.now % 2  # before the operator behind that one
            words = (node.now, rec.POLICY_LATE if late else rec.POLICY_SELECTIVITY, each.ordinal, 0, operator)
            node.write(rec.SHED, self.flags, unit, each, *words)
        return len(shed)

    def outputs(self, unit: int, exit_: int, lineage: Lineage) -> list[Lineage]:
        draw = self.random.random()
        if self.plan.units[unit].filters[exit_] and draw < 0.4:
            return []
        if self.many and draw > 1 - self.many and lineage.ordinal < 1 << 24:
            pick = self.random.sample(range(1, 5), self.random.randrange(1, 4))
            return [lineage.child(lineage.ordinal * 256 + i) for i in sorted(pick)]
        return [lineage]

    def crash(self, node: Node) -> None:
        node.crashed = True
        node.write(rec.PLAN, 0, rec.STATE_CRASHED, None, node.now, 131, last=self.plan.hash_u64)
        self.nodes[node.index] = self._start(node.index, node.boot + 1)
        self.all.append(self.nodes[node.index])

    def drain(self) -> None:
        while self.events:
            what, *arguments = self.events.popleft()
            getattr(self, what)(*arguments)

    def finish(self, ended: bool = True) -> None:
        """Stop all nodes in order: what waits is lost (stopped), as the engine does when it unloads a plan."""
        for node in self.nodes.values():
            for (unit, *_), waiting in node.joins.items():
                for each in waiting.values():
                    if each is not None:
                        node.write(rec.LOST, self.flags, unit, each, node.now, rec.CAUSE_JOIN_EXPIRED, each.ordinal)
            node.joins.clear()
            for kind in (rec.WINDOW, rec.CLOCK, rec.ACKED):
                node.write(kind, 0, 0, None, node.now)
            node.write(rec.LOAD, 0, 0, None, node.now, last=len(node.records))
            node.ended = ended
            if ended:
                node.write(rec.PLAN, 0, rec.STATE_ENDED, None, node.now, 131, last=self.plan.hash_u64)

    def save(self, path: Path, per_segment: int = 40) -> Path:
        """Write the run directory."""
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        (path / "plan.json").write_text(json.dumps(self.document))
        traces = [{
            "node": n.name, "boot": f"{n.boot:016x}", "records": len(n.records) if n.count_known else None,
            "ended": n.ended, "crashed": n.crashed, "reachable": n.reachable, "sealed": n.ended or n.crashed,
        } for n in self.all]  # fmt: skip
        run = {"run": path.name, "plan_hash": self.plan.hash, "virtual": True, "traces": traces, "scenario": {}}
        run["going_on"] = [f"{77:016x}"]
        (path / "run.json").write_text(json.dumps(run))
        for node in self.all:
            write_trace(path, node, per_segment)
        return path


def write_trace(path: Path, node: Node, per_segment: int = 40) -> None:
    directory = path / "trace" / "raw" / node.name / f"{node.boot:016x}"
    header = rec.Header(node.name, node.index, node.boot, node.clock, 0, 0, 0, rec.VIRTUAL)
    sealed = rec.STATE_CRASHED if node.crashed else rec.STATE_ENDED if node.ended else 0
    traces.write(directory, header, node.records, sealed, per_segment)


def everything() -> dict[str, Any]:
    """A plan on two nodes with a chain, a diamond across nodes, a side input, a union and filters."""
    return plan_document(
        ["a", "b"],
        {"car": "a", "ego": "b"},
        [
            {"name": "split", "at": "a", "in": ["car"]},
            {"name": "left", "at": "a", "in": ["split"], "side": ["ego"], "mean": 0.7},
            {"name": "right", "at": "b", "in": ["split"]},
            {"name": "both", "at": "b", "in": ["left", "right"], "join": True},
            {"name": "after", "at": "b", "in": ["both"], "unit": "both", "mean": 0.8},
            {"name": "any", "at": "a", "in": ["ego", "left"]},
        ],
        {"near": ("split", "a", 15 * MS), "far": ("after", "b", 25 * MS), "mixed": ("any", "b", 18 * MS)},
    )


def random_document(seed: int) -> dict[str, Any]:
    """A random plan: up to three nodes, sources and eight operators of every kind."""
    dice = random.Random(seed)
    nodes = ["a", "b", "c"][: dice.randrange(1, 4)]
    sources = {f"s{i}": dice.choice(nodes) for i in range(dice.randrange(1, 4))}
    roots: dict[str, frozenset[str]] = {name: frozenset([name]) for name in sources}
    ops: list[Op] = []
    for number in range(dice.randrange(1, 9)):
        op: Op = {"name": f"o{number}", "at": dice.choice(nodes)}
        streams, kind = list(roots), dice.random()
        first = dice.choice(streams)
        twins = [s for s in streams if s != first and roots[s] == roots[first]]
        if kind < 0.25 and twins:
            op |= {"in": [first, dice.choice(twins)], "join": True}
        elif kind < 0.4 and len(streams) > 1:
            op |= {"in": dice.sample(streams, 2)}
        else:
            op |= {"in": [first]}
            previous = ops[-1] if ops and ops[-1]["name"] == first else None
            if previous and dice.random() < 0.5:
                op |= {"at": previous["at"], "unit": previous.get("unit", previous["name"])}
        if dice.random() < 0.3:
            op["mean"] = 0.5
        if dice.random() < 0.25:
            op["side"] = [dice.choice(streams)]
        roots[op["name"]] = frozenset().union(*(roots[s] for s in op["in"]))
        ops.append(op)
    read = {s for op in ops for s in (*op["in"], *op.get("side", []))}
    outputs = {}
    for name in [*sources, *(op["name"] for op in ops)]:
        if name not in read or dice.random() < 0.2:
            outputs[f"out_{name}"] = (name, dice.choice(nodes), dice.randrange(5, 40) * MS)
    return plan_document(nodes, sources, ops, outputs)


def play(
    document: dict[str, Any],
    seed: int,
    tuples: int = 12,
    mishaps: float = 0.1,
    many: float = 0.1,
    policed: float = 0.0,
) -> Cluster:
    """Admit tuples from every source in turn and stop in order."""
    cluster = Cluster(document, seed, mishaps, many, policed)
    for _ in range(tuples):
        cluster.admit(cluster.random.choice(sorted(cluster.plan.sources)))
        if cluster.random.random() < 0.7:
            cluster.drain()
    cluster.drain()
    cluster.finish()
    return cluster
