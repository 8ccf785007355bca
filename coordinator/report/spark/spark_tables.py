"""Tables that the Spark verdict joins: the runs' traces as one, their plans as small ones. Keys begin with `run`."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructField, StructType

from coordinator.errors import unwritable_run
from coordinator.report.facts.completeness import Trace, incomplete_nodes, unknown_nodes
from coordinator.report.facts.plan_view import OUTPUT, PEER, UNIT, PlanView, Reach, consumer_id
from coordinator.report.facts.reader import Run
from coordinator.report.landing import record_fields
from coordinator.report.landing.landed_run import land
from coordinator.report.landing.record_columns import SCHEMA
from coordinator.report.spark.shared_files import Progress, SharedFiles
from coordinator.report.witness.compare import compare
from protos.records import NO_REF

READ = "r_"  # before the name of a field, as plans have columns of the same names
_TYPES = {"int32": IntegerType(), "int64": LongType(), "bool": BooleanType()}
PARQUET_SCHEMA = StructType([StructField(each.name, _TYPES.get(str(each.type), StringType())) for each in SCHEMA])
COMMON = ("place", *record_fields.LINEAGE)
BY_SOURCE, BY_STREAM, BY_UNIT = range(3)  # what a record says of where something came
REFS = ("unit", "peer", "output", "source_id", "operator")  # whom a record is about: the first that it has


def col(name: str) -> Column:
    """The column of that name."""
    return F.col(name)


def lit(value: int) -> Column:
    """A constant, as wide as the words of a record."""
    return F.lit(int(value)).cast("long")


def small(spark: SparkSession, columns: str, rows: Iterable[Sequence[Any]]) -> DataFrame:
    """A table for broadcast joins. columns: names, `name:string` or `name:bool` where it is no integer."""
    fields = [name.split(":") for name in columns.split()]
    types = {"string": pa.string(), "bool": pa.bool_()}
    schema = pa.schema([(name, types[kind[0]] if kind else pa.int64()) for name, *kind in fields])
    by_column: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in fields]
    arrays = [pa.array(values, type=field.type) for values, field in zip(by_column, schema, strict=True)]
    return F.broadcast(spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema)))


def traces(spark: SparkSession, runs: Sequence[Run], files: SharedFiles, progress: Progress) -> DataFrame:
    """Every usable record of all runs: `run`, `inc` (incarnation), `at_node`, `clock` and `kind` by number (clock 0: no
    name), `ref`, `flagged`, what all kinds have, and the fields of the kinds with READ before their names."""
    frames, places, clocks = [], [], {"": 0}
    for number, run in enumerate(runs):
        try:
            landed = land(run.path, run.firsts)
        except OSError as error:
            raise unwritable_run(run.path / "trace" / "parquet", error) from error
        known = {(run.plan.nodes[each.node], each.boot_hex): each for each in run.incarnations}
        for trace, sealed in enumerate(landed.seal.traces):
            if each := known.get((sealed.node, sealed.boot)):
                clock = clocks.setdefault(each.clock, len(clocks))
                places.append((number, trace, each.number, each.node, clock))
        if paths := files.paths(landed, run.name, progress):
            frames.append(spark.read.schema(PARQUET_SCHEMA).parquet(*paths).withColumn("run", lit(number)))
    if not frames:
        frames.append(spark.createDataFrame([], PARQUET_SCHEMA).withColumn("run", lit(0)))
    every = reduce(DataFrame.unionByName, frames)
    if len(frames) > 1:  # a partition for each file of each run would be a task for each in every stage that follows
        every = every.coalesce(spark.sparkContext.defaultParallelism)
    flags = F.coalesce(*map(col, record_fields.FLAGS), F.lit(False))
    numbers = F.array_position(F.array(*map(F.lit, record_fields.NAMES)), col("kind"))
    named = every.select(
        "run",
        "trace",
        *COMMON,
        numbers.alias("kind"),
        flags.alias("flagged"),
        F.coalesce(*map(col, REFS), lit(NO_REF)).alias("ref"),
        *(col(name).alias(READ + name) for name in record_fields.WORDS if name not in record_fields.LINEAGE),
    )
    where = small(spark, "run trace inc at_node clock", places)
    return named.join(where, ["run", "trace"]).drop("trace")


@dataclass(frozen=True)
class Plans:
    """The plans of all runs as tables."""

    hashes: DataFrame  # run hash number
    same: DataFrame  # run ref known_as: outputs of earlier plans that are known by another id
    peers: DataFrame  # run number ref joined: nodes that an earlier plan numbers otherwise
    sources: DataFrame  # run ref at_node stream
    units: DataFrame  # run ref unit_node exits
    exits: DataFrame  # run ref exit stream
    consumers: DataFrame  # run at_node stream consumer
    takers: DataFrame  # run by key at_node exit consumer: key is a source, a stream or a unit with exits
    before: DataFrame  # run ref operator kept through: exits of the unit before that operator, and with its own
    outputs: DataFrame  # run ref out_node deadline
    bounds: DataFrame  # run output plan bound: plan is its number in the run
    lead_units: DataFrame  # run output unit: the unit leads to the output
    lead_streams: DataFrame  # run output at_node stream
    windows: DataFrame  # run source: of windows
    moved: bool  # whether any run has ids of several plans


def signed(value: int) -> int:
    """A u64 as the same bits in an i64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def plans(spark: SparkSession, runs: Sequence[Run]) -> Plans:
    """The tables of what does not depend on the traces."""
    views = [(number, run.plan) for number, run in enumerate(runs)]
    reaches = {number: Reach(plan) for number, plan in views}
    return Plans(
        hashes=small(
            spark, "run hash number", [(n, signed(hash_), plan) for n, p in views for hash_, plan in p.numbers.items()]
        ),
        same=small(spark, "run ref known_as", [(n, *ids) for n, p in views for ids in p.same.items()]),
        peers=small(
            spark, "run number ref joined", [(n, *key, node) for n, p in views for key, node in p.peers.items()]
        ),
        sources=small(
            spark, "run ref at_node stream", [(n, s, *where) for n, p in views for s, where in p.sources.items()]
        ),
        units=small(
            spark,
            "run ref unit_node exits",
            [(n, u.id, u.node, len(u.exits)) for n, p in views for u in p.units.values()],
        ),
        exits=small(
            spark,
            "run ref exit stream",
            [(n, u.id, e, s) for n, p in views for u in p.units.values() for e, s in enumerate(u.exits)],
        ),
        consumers=small(
            spark,
            "run at_node stream consumer",
            [(n, *where, c) for n, p in views for where, found in p.consumers.items() for c in found],
        ),
        takers=small(spark, "run by key at_node exit consumer", [(n, *row) for n, p in views for row in takers(p)]),
        before=small(
            spark,
            "run ref operator kept through",
            [(n, *key, exits, p.through[key]) for n, p in views for key, exits in p.before.items()],
        ),
        outputs=small(
            spark,
            "run ref out_node deadline",
            [(n, o.id, o.node, o.deadline_ns) for n, p in views for o in p.outputs.values()],
        ),
        bounds=small(spark, "run output plan bound", [(n, *key, ns) for n, p in views for key, ns in p.bounds.items()]),
        lead_units=small(
            spark,
            "run output unit",
            [(n, o, u) for n, p in views for u in p.units for o in reaches[n].consumer(0, consumer_id(UNIT, u))],
        ),
        lead_streams=small(
            spark,
            "run output at_node stream",
            [(n, o, *where) for n, p in views for where in p.consumers for o in reaches[n].stream(*where)],
        ),
        windows=small(spark, "run source", [(n, source) for n, p in views for source in p.windows]),
        moved=any(len(p.numbers) > 1 or p.same or p.peers for _, p in views),
    )


def takers(plan: PlanView) -> Iterator[tuple[int, int, int, int, int]]:
    """Who consumes what comes by a source, on a stream, or from an exit of a unit, at each node."""
    for source, (node, stream) in plan.sources.items():
        for consumer in plan.consumers.get((node, stream), ()):
            yield BY_SOURCE, source, node, 0, consumer
    made: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for unit in plan.units.values():
        for exit_, stream in enumerate(unit.exits):
            made[stream].append((unit.id, exit_))
    for (node, stream), consumers in plan.consumers.items():
        for consumer in consumers:
            yield BY_STREAM, stream, node, 0, consumer
            for unit_id, exit_ in made[stream]:
                yield BY_UNIT, unit_id, node, exit_, consumer


def reach_rows(number: int, plan: PlanView, seen: Iterable[tuple[int, int]]) -> list[tuple[int, int, int, int, bool]]:
    """(run, consumer, exits kept, output, sure): which outputs miss a tuple that this consumer did not end well."""
    reach = Reach(plan, seen)
    found = [
        (consumer_id(UNIT, unit.id), kept, reach.after(unit.id, kept))
        for unit in plan.units.values()
        for kept in range(1 << len(unit.exits))
    ]
    found += [(consumer_id(PEER, *where), 0, reach.stream(*where)) for where in plan.consumers]
    found += [(consumer_id(OUTPUT, output), 0, {output: True}) for output in plan.outputs]
    return [(number, consumer, kept, o, sure) for consumer, kept, to in found for o, sure in to.items()]


def witnessed(
    spark: SparkSession, runs: Sequence[Run], judged: Sequence[Sequence[Trace]]
) -> tuple[DataFrame, DataFrame]:
    """(run fault inc ref LINEAGE ordinal times, where records and their second witnesses disagree; run LINEAGE slow,
    tuples that took longer than their clock says)."""
    told = [compare(run.plan, traces) for run, traces in zip(runs, judged, strict=True)]
    problems = [(n, *each) for n, (found, _) in enumerate(told) for each in found]
    slow = [(n, *lineage, True) for n, (_, lineages) in enumerate(told) for lineage in sorted(lineages)]
    return (
        small(spark, "run fault inc ref source epoch seq ordinal times", problems),
        small(spark, "run source epoch seq slow:bool", slow),
    )


def status_tables(
    spark: SparkSession, runs: Sequence[Run], judged: Sequence[Sequence[Trace]]
) -> tuple[DataFrame, DataFrame]:
    """(run inc status), and (run node incomplete unknown) for every node of each plan."""
    statuses = [(n, t.incarnation.number, int(t.status)) for n, traces in enumerate(judged) for t in traces]
    nodes = []
    for number, (run, found) in enumerate(zip(runs, judged, strict=True)):
        incomplete, unknown = incomplete_nodes(run, found), unknown_nodes(run, found)
        nodes += [(number, node, node in incomplete, node in unknown) for node in run.plan.nodes]
    return (
        small(spark, "run inc status", statuses),
        small(spark, "run node incomplete:bool unknown:bool", nodes),
    )
