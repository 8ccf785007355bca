"""The figures of a report recounted by DuckDB from the raw records, for runs in which nothing is amiss.

A third implementation beside the report's two: it shares no code with either, reads the plan as plain JSON and the
records by a layout of its own, and says what a query would say who only had the documents. It knows one plan, whole
traces, and nothing of second witnesses: a run that a report calls contradictory is not for it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from infra.bench.report.raw_table import load

PLAN, ADMITTED, RAN, SENT, RECEIVED, OUTPUT, SHED, LOST, MERGED, ABSORBED = 1, 2, 3, 4, 5, 8, 9, 10, 11, 12
NO_REF, FLAG, QUANTILES = 0xFFFF, 128, 200
ENDLESS_NS = 1 << 60  # instants are clamped to it; a latency of that size is none
UNIT, SIDE, OUT, PEER, RESULT = range(1, 6)
SELECTIVITY, OUTDATED, ARRIVALS = 5, 11, 4


@dataclass
class Recount:
    """What was counted. results: by output and how they ended; quantiles_ns: by output, nearest ranks of k/200."""

    admitted: int = 0
    accounted: int = 0
    obligations: int = 0
    by_outcome: dict[str, int] = field(default_factory=dict)
    results: dict[str, dict[str, int]] = field(default_factory=dict)
    quantiles_ns: dict[str, list[int | None]] = field(default_factory=dict)


def recount(run: Path, threads: int = 2) -> Recount:
    """Of a run directory."""
    plan = _Plan(json.loads((run / "plan.json").read_text(encoding="utf-8")))
    with duckdb.connect(config={"threads": threads}) as base:
        load(run, plan.numbers, base)
        plan.tables(base)
        for statement in BOOKS:
            base.execute(statement)
        found = Recount()
        (found.admitted,) = _row(base, f"SELECT count(*) FROM facts WHERE kind = {ADMITTED}")
        (found.accounted,) = _row(base, ACCOUNTED)
        (found.obligations,) = _row(base, "SELECT sum(fixed + free) FROM cells")
        found.by_outcome = {name: int(n) for name, n in base.execute(OUTCOMES).fetchall()}
        filtering = {(unit, exit_) for unit, exit_ in base.execute(FILTERING).fetchall()}
        plan.reach_table(base, filtering)
        base.execute(ANSWERS)
        for name, end, n in base.execute(RESULTS).fetchall():
            found.results.setdefault(name, {})[end] = int(n)
        for name, ns in base.execute(RANKS).fetchall():
            found.quantiles_ns[name] = [int(each) if each < ENDLESS_NS else None for each in ns]
        return found


def _row(base: duckdb.DuckDBPyConnection, query: str) -> tuple[int, ...]:
    return tuple(int(each or 0) for each in base.execute(query).fetchall()[0])


def _int(given: dict[str, Any], key: str) -> int:
    return int(given.get(key, 0))


class _Plan:
    """plan.json: who consumes what, and which outputs that leads to."""

    def __init__(self, document: dict[str, Any]) -> None:
        stamp = int(document["hash"][:16], 16)
        self.stamp = stamp - (1 << 64) if stamp >> 63 else stamp  # as records carry it, read as a signed number
        self.numbers = {name: int(node["index"]) for name, node in document["cluster"]["nodes"].items()}
        self.consumers: list[tuple[int, int, int, int]] = []  # node stream kind ref
        self.sources: list[tuple[int, int]] = []
        self.outputs: list[tuple[int, str, int]] = []
        self.exits: dict[int, list[tuple[int, int, bool]]] = {}  # unit -> (stream, node, whether it may filter)
        self.inputs: dict[int, list[int]] = {}
        self.joins: set[int] = set()
        self.kept: list[tuple[int, int, int, int]] = []  # unit operator: bits of exits before, and with it
        operators = document.get("graph", {}).get("operators", {})
        declared = {name: each.get("selectivity") for name, each in operators.items()}
        for name, local in document["nodes"].items():
            self._node(self.numbers[name], local, declared)

    def _node(self, node: int, local: dict[str, Any], declared: dict[str, Any]) -> None:
        operators = {_int(each, "id"): each for each in local.get("operators", ())}
        for source in local.get("sources", ()):
            self.sources.append((_int(source, "id"), _int(source, "stream")))
        for output in local.get("outputs", ()):
            self.outputs.append((_int(output, "id"), output["name"], _int(output, "deadline_ns")))
            self.consumers.append((node, _int(output, "stream"), OUT, _int(output, "id")))
        for send in local.get("sends", ()):
            self.consumers.append((node, _int(send, "stream"), PEER, _int(send, "peer")))
        for operator in operators.values():
            for side in operator.get("sides", ()):
                self.consumers.append((node, _int(side, "stream"), SIDE, _int(operator, "id")))
        for unit in local.get("units", ()):
            chain = [operators[int(each)] for each in unit["operators"]]
            number, exits = _int(unit, "id"), [int(each) for each in unit.get("exits", ())]
            self.inputs[number] = [int(each) for each in chain[0].get("inputs", ())]
            self.consumers += [(node, stream, UNIT, number) for stream in self.inputs[number]]
            if chain[0].get("join") and "window" not in chain[0]:
                self.joins.add(number)
            filters, until, given = False, {}, 0
            for operator in chain:
                filters |= _filters(declared.get(operator["name"]))
                until[_int(operator, "output")] = filters
                own = sum(1 << at for at, stream in enumerate(exits) if stream == _int(operator, "output"))
                self.kept.append((number, _int(operator, "id"), given, given | own))
                given |= own
            self.exits[number] = [(stream, node, until[stream]) for stream in exits]

    def tables(self, base: duckdb.DuckDBPyConnection) -> None:
        """The plan as tables."""
        exits = [(unit, at, stream) for unit, found in self.exits.items() for at, (stream, _, _) in enumerate(found)]
        _table(base, "plan", "stamp", [(self.stamp,)])
        _table(base, "consumers", "node stream what whom", self.consumers)
        _table(base, "sources", "source stream", self.sources)
        _table(base, "exits", "unit nth stream", exits)
        _table(base, "kept", "unit operator before through", self.kept)
        base.execute("CREATE TABLE outputs (output BIGINT, name VARCHAR, deadline BIGINT)")
        base.executemany("INSERT INTO outputs VALUES (?, ?, ?)", self.outputs)

    def reach_table(self, base: duckdb.DuckDBPyConnection, seen: set[tuple[int, int]]) -> None:
        """what ref stream kept output sure: what misses a tuple that came to an early end there."""
        at: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for node, stream, what, ref in self.consumers:
            at[node, stream].append((what, ref))
        made = {stream: (unit, n) for unit, found in self.exits.items() for n, (stream, _, _) in enumerate(found)}

        def filters(unit: int, n: int) -> bool:
            return self.exits[unit][n][2] or (unit, n) in seen

        def upstream(unit: int) -> bool:
            before = [made[stream] for stream in self.inputs[unit] if stream in made]
            return any(filters(*each) or upstream(each[0]) for each in before)

        def stream_to(node: int, stream: int) -> dict[int, bool]:
            return _all(to(what, ref, stream) for what, ref in at[node, stream])

        def after(unit: int, kept: int) -> dict[int, bool]:
            found = []
            for n, (stream, node, _) in enumerate(self.exits[unit]):
                if not kept >> n & 1:
                    sure = not filters(unit, n) and not (unit in self.joins and upstream(unit))
                    found.append({output: sure and on for output, on in stream_to(node, stream).items()})
            return _all(found)

        def to(what: int, ref: int, stream: int) -> dict[int, bool]:
            if what == UNIT:
                return after(ref, 0)
            return {ref: True} if what == OUT else stream_to(ref, stream) if what == PEER else {}

        rows = [
            (UNIT, unit, 0, kept, output, int(sure))
            for unit, exits in self.exits.items()
            for kept in range(1 << len(exits))
            for output, sure in after(unit, kept).items()
        ]
        rows += [
            (what, ref, stream if what == PEER else 0, 0, output, int(sure))
            for what, ref, stream in {(w, r, s if w == PEER else 0) for _, s, w, r in self.consumers if w != UNIT}
            for output, sure in to(what, ref, stream).items()
        ]
        _table(base, "reach", "what ref stream kept output sure", rows)


def _filters(selectivity: dict[str, Any] | None) -> bool:
    if selectivity is None:
        return False
    return selectivity["mean"] < 1 or any(_fewer(pair) for pair in selectivity.get("at_most", ()))


def _fewer(pair: Any) -> bool:
    inputs, results = pair.values() if isinstance(pair, dict) else pair
    return int(inputs) < int(results)


def _all(found: Iterable[dict[int, bool]]) -> dict[int, bool]:
    together: dict[int, bool] = {}
    for each in found:
        for output, sure in each.items():
            together[output] = together.get(output, True) and sure
    return together


def _table(base: duckdb.DuckDBPyConnection, name: str, columns: str, rows: Iterable[tuple[int, ...]]) -> None:
    names = columns.split()
    base.execute(f"CREATE TABLE {name} ({', '.join(f'{each} BIGINT' for each in names)})")
    held = list(rows)
    if held:
        base.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(names))})", held)


IN_UNIT = f"(kind = {RAN} OR (kind = {LOST} AND flags < {FLAG} AND ref <> {NO_REF}))"
ORDINAL = f"""CASE kind WHEN {RAN} THEN (last >> 32) & 4294967295 WHEN {SENT} THEN word3 WHEN {RECEIVED} THEN word4
    WHEN {OUTPUT} THEN word4 WHEN {SHED} THEN word2 WHEN {LOST} THEN word2 WHEN {MERGED} THEN word3
    WHEN {ABSORBED} THEN word2 ELSE 0 END"""
SURPLUS = f"CASE WHEN kind = {RAN} THEN (word4 >> 48) & 65535 ELSE word3 & 65535 END"
OF_RESULT = f"(kind = {SHED} AND ref <> {NO_REF} AND (word1 IN ({SELECTIVITY}, {OUTDATED}) OR word4 <> 0))"
NOBODY = f"((kind = {SHED} OR (kind = {LOST} AND flags < {FLAG})) AND ref = {NO_REF})"
TUPLE = "source, epoch, seq"

BOOKS = (
    f"""CREATE VIEW facts AS SELECT r.*, {ORDINAL} AS ordinal FROM records r SEMI JOIN
        (SELECT DISTINCT inc, word1 & 127 AS epoch FROM records
            WHERE kind = {PLAN} AND last = (SELECT stamp FROM plan)) p
        ON p.inc = r.inc AND p.epoch = (r.flags & 127)""",
    f"""CREATE TABLE instances AS
    SELECT inc, node, ref, {TUPLE}, ordinal, bit_or(last & 4294967295) AS outputs, sum({SURPLUS}) AS shed,
        count(*) FILTER (kind = {RAN} AND flags < {FLAG}) AS finals, count(*) FILTER (kind = {LOST}) AS lost
    FROM facts WHERE {IN_UNIT} GROUP BY ALL""",
    f"""CREATE VIEW given AS
    SELECT r.inc, r.node, r.source, r.epoch, r.seq, e.stream, (r.last >> (8 * e.nth)) & 255 AS n, r.ordinal AS parent
    FROM facts r JOIN exits e ON e.unit = r.ref WHERE {IN_UNIT.replace("kind", "r.kind")}
        AND (r.last >> (8 * e.nth)) & 255 > 0""",
    f"""CREATE TABLE cells AS WITH arrivals AS (
        SELECT inc, node, {TUPLE}, s.stream, 0 AS ordinal, 1 AS fixed, 0 AS free
            FROM facts JOIN sources s USING (source) WHERE kind = {ADMITTED}
        UNION ALL SELECT inc, node, {TUPLE}, word3, ordinal, 1, 0 FROM facts WHERE kind = {RECEIVED}
        UNION ALL SELECT inc, node, {TUPLE}, stream,
            unnest(CASE WHEN n = 1 THEN [parent] ELSE list_transform(range(1, n + 1), lambda i: parent * 256 + i) END),
            0, 1 FROM given
    ), owed AS (
        SELECT inc, c.what, c.whom AS ref, CASE WHEN c.what IN ({SIDE}, {PEER}) THEN c.stream ELSE 0 END AS stream,
            {TUPLE}, ordinal, fixed, free, 0 AS ends
        FROM arrivals a JOIN consumers c ON c.node = a.node AND c.stream = a.stream
        UNION ALL SELECT inc, {RESULT}, ref, 0, {TUPLE}, ordinal, 0, {SURPLUS}, 0 FROM facts
            WHERE {IN_UNIT} AND {SURPLUS} > 0
        UNION ALL SELECT inc,
            CASE WHEN kind = {ABSORBED} THEN {SIDE} WHEN kind = {OUTPUT} THEN {OUT} WHEN kind = {SENT} THEN {PEER}
                WHEN kind = {LOST} AND flags >= {FLAG} THEN {PEER} WHEN {OF_RESULT} THEN {RESULT} ELSE {UNIT} END,
            ref, CASE WHEN kind = {ABSORBED} THEN word1 WHEN kind = {SENT} THEN word2
                WHEN kind = {LOST} AND flags >= {FLAG} THEN word3 ELSE 0 END, {TUPLE}, ordinal, 0, 0, 1
        FROM facts WHERE kind IN ({RAN}, {SENT}, {OUTPUT}, {SHED}, {LOST}, {MERGED}, {ABSORBED})
            AND NOT (kind = {RAN} AND flags >= {FLAG}) AND NOT {NOBODY}
        UNION ALL SELECT f.inc, c.what, c.whom, CASE WHEN c.what IN ({SIDE}, {PEER}) THEN c.stream ELSE 0 END,
            f.source, f.epoch, f.seq, f.ordinal, 0, 0, 1
        FROM facts f JOIN consumers c ON c.node = f.node AND c.stream = f.word3 WHERE {NOBODY}
    )
    SELECT inc, what, ref, stream, {TUPLE}, ordinal, sum(fixed) AS fixed, sum(free) AS free, sum(ends) AS ends
    FROM owed GROUP BY ALL""",
    f"""CREATE TABLE links AS WITH both_ends AS (
        SELECT node AS here, ref AS there, word2 AS stream, {TUPLE}, ordinal, 1 AS sent, 0 AS came
            FROM facts WHERE kind = {SENT}
        UNION ALL SELECT ref, node, word3, {TUPLE}, ordinal, 0, 1 FROM facts WHERE kind = {RECEIVED}
    ) SELECT here, there, stream, {TUPLE}, ordinal, sum(sent) AS sent, greatest(sum(sent) - sum(came), 0) AS gone
    FROM both_ends GROUP BY ALL""",
)

ACCOUNTED = f"""SELECT count(*) FROM facts r WHERE r.kind = {ADMITTED} AND ({TUPLE}) NOT IN (
    SELECT DISTINCT {TUPLE} FROM cells GROUP BY inc, what, ref, stream, {TUPLE}
    HAVING sum(fixed) + sum(free) <> sum(ends))"""

OUTCOMES = f"""
    SELECT CASE WHEN outputs = 0 AND shed = 0 AND ref IN (SELECT unit FROM exits) THEN 'filtered' ELSE 'consumed' END,
        sum(finals) FROM instances WHERE finals > 0 GROUP BY 1
    UNION ALL SELECT 'delivered', count(*) FROM facts WHERE kind = {OUTPUT}
    UNION ALL SELECT 'absorbed', count(*) FROM facts WHERE kind = {ABSORBED}
    UNION ALL SELECT 'merged', count(*) FROM facts WHERE kind = {MERGED}
    UNION ALL SELECT 'sent', coalesce(sum(sent - gone), 0) FROM links
    UNION ALL SELECT CASE kind WHEN {SHED} THEN 'shed' ELSE 'lost' END, sum(n) FROM (
        SELECT kind, CASE WHEN {NOBODY} THEN (SELECT count(*) FROM consumers c
            WHERE c.node = f.node AND c.stream = f.word3) ELSE 1 END AS n
        FROM facts f WHERE kind IN ({SHED}, {LOST})
        UNION ALL SELECT {LOST}, gone FROM links) GROUP BY 1"""

FILTERING = """SELECT DISTINCT unit, nth FROM instances JOIN exits ON unit = ref
    WHERE finals > 0 AND lost = 0 AND shed = 0 AND (outputs >> (8 * nth)) & 255 = 0"""

KEPT = " + ".join(f"(CASE WHEN (outputs >> {8 * at}) & 255 > 0 THEN {1 << at} ELSE 0 END)" for at in range(4))
_CLAMPED = [f"greatest({-ENDLESS_NS}, least({ENDLESS_NS}, word{n}))" for n in range(3)]
BY_POLICY = f"CASE WHEN word1 IN ({ARRIVALS}, {SELECTIVITY}) THEN 4 ELSE 3 END"

# rank: 0 delivered, 2 lost, 3 shed, 4 policed, and 3 more each where something on the way may have filtered it
ANSWERS = f"""CREATE TABLE answers AS WITH missed AS (
        SELECT CASE kind WHEN {SHED} THEN {BY_POLICY} ELSE 2 END AS rank, {UNIT} AS what, ref, 0 AS stream, 0 AS kept,
            {TUPLE}, ordinal FROM facts WHERE kind = {SHED} AND NOT {OF_RESULT} AND ref <> {NO_REF}
        UNION ALL SELECT 2, {PEER}, ref, word3, 0, {TUPLE}, ordinal FROM facts WHERE kind = {LOST} AND flags >= {FLAG}
        UNION ALL SELECT CASE kind WHEN {SHED} THEN {BY_POLICY} ELSE 2 END, c.what, c.whom,
            CASE WHEN c.what = {PEER} THEN c.stream ELSE 0 END, 0, {TUPLE}, ordinal
        FROM facts f JOIN consumers c ON c.node = f.node AND c.stream = f.word3 WHERE {NOBODY}
        UNION ALL SELECT 2, {UNIT}, ref, 0, {KEPT}, {TUPLE}, ordinal FROM instances WHERE lost > 0
        UNION ALL SELECT {BY_POLICY}, {UNIT}, ref, 0,
            CASE WHEN word1 IN ({SELECTIVITY}, {OUTDATED}) THEN coalesce(k.before, 0) ELSE coalesce(k.through, 0) END,
            {TUPLE}, ordinal
        FROM facts f LEFT JOIN kept k ON k.unit = f.ref AND k.operator = f.word4 WHERE {OF_RESULT}
        UNION ALL SELECT 2, {PEER}, there, stream, 0, {TUPLE}, ordinal FROM links WHERE gone > 0
    ), every AS (
        SELECT ref AS output, {TUPLE}, ordinal, 0 AS rank, {_CLAMPED[0]} - {_CLAMPED[1]} AS upper,
            {_CLAMPED[0]} - {_CLAMPED[2]} AS lower
            FROM facts WHERE kind = {OUTPUT}
        UNION ALL SELECT r.output, {TUPLE}, ordinal, CASE WHEN r.sure = 1 THEN m.rank ELSE m.rank + 3 END, 0, 0
            FROM missed m JOIN reach r ON r.what = m.what AND r.ref = m.ref AND r.stream = m.stream AND r.kept = m.kept
    ), best AS (
        SELECT output, {TUPLE}, ordinal, min((rank, upper, lower)) AS answer FROM every GROUP BY ALL
    ) SELECT output, answer[1] AS rank, answer[2] AS upper, answer[3] AS lower FROM best"""

RESULTS = """SELECT o.name, CASE WHEN rank = 0 AND upper <= deadline THEN 'met' WHEN rank = 0 AND lower > deadline
        THEN 'late' WHEN rank = 0 THEN 'undecidable' WHEN rank = 2 THEN 'lost' WHEN rank IN (3, 4) THEN 'shed'
        WHEN rank = 5 THEN 'lost_unsure' ELSE 'shed_unsure' END, count(*)
    FROM answers JOIN outputs o USING (output) GROUP BY ALL"""

RANKS = f"""WITH held AS (SELECT output, list_sort(list(upper)) AS ns FROM answers WHERE rank = 0 GROUP BY output)
    SELECT o.name, list_transform(range(1, {QUANTILES + 1}),
        lambda k: ns[greatest(1, CAST(ceil(k * len(ns) / {QUANTILES}.0) AS BIGINT))])
    FROM held JOIN outputs o USING (output)"""
