"""Data behind the results of outputs that ask for their age or their reaction, as Spark columns; `ledger.behind` is the
same in plain Python.

A *datum* is a tuple at a place (`data_ways.py`). What may be behind one is a frame of edges, found once; what is behind
all of them goes up along these, a place at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from coordinator.report.counts import INSTANT_LIMIT, Behind, Counts, Extent, Number, Origin
from coordinator.report.facts.clock_intervals import RunClocks, run_clocks
from coordinator.report.facts.completeness import Trace
from coordinator.report.facts.data_ways import COUNT, DataWays, Place, data_ways, positions
from coordinator.report.facts.merged_plans import epochs_before
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.reader import Run
from coordinator.report.spark.shared_files import SharedFiles
from coordinator.report.spark.spark_records import LINEAGE, TUPLE, flagged, is_, of_unit, value
from coordinator.report.spark.spark_results import instant
from coordinator.report.spark.spark_tables import col, lit, small
from protos import records as rec
from protos.records import Absorbed, Admitted, Lost, Merged, Output, Ran

DATUM = ["run", "place", *TUPLE]
RESULT = ["run", "output", *TUPLE]
Persist = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class _WayTables:
    """The ways of all runs as tables. All keys begin with `run`."""

    units: DataFrame  # run place unit
    below: DataFrame  # run place child
    slots: DataFrame  # run unit child max_age strictest
    absorbs: DataFrame  # run operator stream child
    outputs: DataFrame  # run output out_node place
    fusions: DataFrame  # run unit child
    windows: DataFrame  # run window child unit length lateness counted:bool
    positions: DataFrame  # run window o_node ahead_lo ahead_hi
    canonical: DataFrame  # run source named
    asked: DataFrame  # run named: sources that may be behind some output
    ahead: DataFrame  # run at_node o_node ahead_lo ahead_hi
    epochs: DataFrame  # run inc under of back: plan epochs, and those before them, the nearest first


@dataclass(frozen=True)
class _Asking:
    """A run some output of which asks."""

    number: int
    plan: PlanView
    data_ways: DataWays
    clocks: RunClocks
    traces: Sequence[Trace]

    @classmethod
    def of(cls, number: int, run: Run, traces: Sequence[Trace]) -> "_Asking":
        """Of a run, by its number."""
        return cls(number, run.plan, data_ways(run.plan), run_clocks(run), traces)

    def epochs(self) -> Iterator[tuple[int, int, int, int]]:
        """As `_WayTables.epochs`."""
        for trace in self.traces:
            for under in sorted(trace.scan.epochs):
                for back, of in enumerate(epochs_before(under, trace.scan.epochs)):
                    yield trace.incarnation.number, under, of, back

    @property
    def places(self) -> Iterator[tuple[int, Place]]:
        """With their numbers."""
        return enumerate(self.data_ways.places)

    def windows(self) -> Iterator[tuple[int, int, int, int, int, bool]]:
        """As `_WayTables.windows`."""
        for source, place in self.data_ways.windows.items():
            view = self.plan.windows[source]
            grid = max(1, view.length_ns), view.lateness_ns, view.kind == COUNT
            yield source, place, self.data_ways.collects[source], *grid


def look_behind(
    spark: SparkSession, runs: Sequence[Run], mine: DataFrame, answers: DataFrame, files: SharedFiles,
    counts: Sequence[Counts],
) -> None:  # fmt: skip
    """Into `counts`. mine: `spark_records.own`, with places. answers: `spark_results.expect`."""
    persist = files.checkpoint
    made = [_Asking.of(n, run, counts[n].traces) for n, run in enumerate(runs) if run.plan.freshness]
    ways, depth = _tables(spark, made), max(each.data_ways.depth for each in made)
    for asking in made:
        counts[asking.number].clocks = asking.clocks
    admitted = persist(_admitted(mine))
    started = persist(_started(mine, ways))
    reads = persist(_reads(mine, started, admitted, ways))
    results = persist(_results(mine, answers, ways))
    edges, data = _edges(mine, started, reads, admitted, results, ways, persist)
    own = _own(data, admitted, ways)
    extents = persist(own)
    for _ in range(depth - 1):
        extents = persist(_up(own, edges, extents))
    behind = _up(_own_of_results(results, ways), edges, extents).join(results.select(*DATUM, "output"), DATUM)
    unread = _line(results).join(ways.units, ["run", "place"]).join(
        reads.where("missing").withColumnRenamed("ordinal", "line"), ["run", "unit", *LINEAGE, "line"]
    ).join(ways.below, ["run", "place", "child"]).select(*RESULT).distinct()  # fmt: skip
    unread_of = {_key(row) for row in files.collect(unread)}
    found: dict[tuple[int, ...], Behind] = {}
    for row in files.collect(results):
        key = (row.output, row.source, row.epoch, row.seq, row.ordinal)
        found[_key(row)] = Behind(*key, row.at, row.lower, row.upper, _key(row) in unread_of)
    for row in files.collect(behind.select(*RESULT, "named", "lo", "hi", "newest", "sure")):
        found[_key(row)].extents[row.named] = _extent(row)
    for of, result in sorted(found.items(), key=lambda one: one[0]):
        counts[of[0]].behind.append(result)
    origins = admitted.join(ways.canonical, ["run", "source"]).join(ways.asked, ["run", "named"])
    for row in files.collect(origins.orderBy("run", "named", "epoch", "seq", "o_lo", "o_hi")):
        counts[row.run].origins.setdefault(row.named, []).append(Origin((row.epoch, row.seq), row.o_lo, row.o_hi))


def _key(row: Row) -> tuple[int, ...]:
    return tuple(row[name] for name in RESULT)


def _extent(row: Row) -> Extent:
    def number(each: Row | None) -> Number | None:
        return None if each is None else (each.epoch, each.seq)

    newest = number(row.newest)
    assert newest is not None
    return Extent(row.lo, row.hi, newest, number(row.sure))


def _tables(spark: SparkSession, made: Sequence[_Asking]) -> _WayTables:
    def table(columns: str, rows: Callable[[_Asking], Iterable[Sequence[Any]]]) -> DataFrame:
        return small(spark, f"run {columns}", [(each.number, *row) for each in made for row in rows(each)])

    return _WayTables(
        units=table("place unit", lambda a: ((p, unit) for p, each in a.places for unit in sorted(each.units))),
        below=table("place child", lambda a: ((p, child) for p, each in a.places for child in each.below)),
        slots=table(
            "unit child max_age strictest",
            lambda a: ((unit, *slot) for unit, slots in a.data_ways.slots.items() for slot in slots),
        ),
        absorbs=table("operator stream child", lambda a: ((*key, place) for key, place in a.data_ways.absorbs.items())),
        outputs=table(
            "output out_node place", lambda a: ((o, a.plan.outputs[o].node, p) for o, p in a.data_ways.outputs.items())
        ),
        fusions=table("unit child", lambda a: a.data_ways.fusions.items()),
        windows=table("window child unit length lateness counted:bool", _Asking.windows),
        positions=table(
            "window o_node ahead_lo ahead_hi",
            lambda a: ((*key, *found) for key, found in positions(a.plan, a.data_ways, a.clocks.ahead).items()),
        ),
        canonical=table(
            "source named", lambda a: (each for each in a.data_ways.canonical.items() if each[0] not in a.plan.windows)
        ),
        asked=table(
            "named",
            lambda a: ((source,) for source in sorted({s for o in a.data_ways.outputs for s in a.data_ways.behind(o)})),
        ),
        ahead=table(
            "at_node o_node ahead_lo ahead_hi", lambda a: ((*p, *found) for p, found in a.clocks.ahead.items())
        ),
        epochs=table("inc under of back", _Asking.epochs),
    )


# -- records


def _admitted(mine: DataFrame) -> DataFrame:
    """run LINEAGE o_lo o_hi o_node: origins, on the clock of that node."""
    return (
        mine.where(is_(rec.ADMITTED))
        .groupBy("run", *LINEAGE)
        .agg(
            F.min(instant(value(Admitted.origin_lo_ns))).alias("o_lo"),
            F.max(instant(value(Admitted.origin_hi_ns))).alias("o_hi"),
            F.min("at_node").cast("long").alias("o_node"),
        )
    )


def _started(mine: DataFrame, ways: _WayTables) -> DataFrame:
    """run inc at_node unit TUPLE start under: when instances of units began that read, fuse or collect, and under which
    plan epoch."""
    units = ways.slots.select("run", "unit").union(ways.fusions.select("run", "unit"))
    wanted = units.union(ways.windows.select("run", "unit")).distinct()
    ran = is_(rec.RAN) | (is_(rec.LOST) & of_unit() & (value(Lost.start_ns) != 0))
    return (
        mine.where(ran)
        .select(
            "run", "inc", col("at_node").cast("long").alias("at_node"), col("ref").cast("long").alias("unit"), *LINEAGE,
            value(Ran.ordinal).alias("ordinal"), instant(value(Ran.start_ns)).alias("start"),
            col("under").cast("long").alias("under"),
        )
        .join(F.broadcast(wanted), ["run", "unit"])
        .groupBy("run", "inc", "at_node", "unit", *TUPLE)
        .agg(F.min(F.struct("start", "under")).alias("first"))
        .select("run", "inc", "at_node", "unit", *TUPLE, "first.*")
    )  # fmt: skip


def _reads(mine: DataFrame, started: DataFrame, admitted: DataFrame, ways: _WayTables) -> DataFrame:
    """run unit TUPLE child value sure missing: what instances read of each side input; value is null where it was none,
    missing where it was none at one of the ports, for certain."""
    nothing = F.lit(None)
    tuple_type = "struct<source:bigint,epoch:bigint,seq:bigint,ordinal:bigint,at:bigint>"
    came = (
        mine.where(is_(rec.ABSORBED) & ~flagged())
        .select(
            "run", "inc", col("ref").cast("long").alias("operator"), value(Absorbed.stream).alias("stream"), "place",
            col("under").cast("long").alias("of"), *LINEAGE,
            value(Absorbed.ordinal).alias("ordinal"), instant(value(Absorbed.at_ns)).alias("at"),
        )
        .join(ways.absorbs, ["run", "operator", "stream"])
    )  # fmt: skip
    fields = [col(name).cast("long").alias(name) for name in (*TUPLE, "at")]
    values = came.select(
        "run", "inc", "child", "of", "at", lit(0).alias("asks"), col("place").cast("long").alias("order"),
        F.struct(*fields).cast(tuple_type).alias("value"), nothing.cast("bigint").alias("unit"),
        nothing.cast("bigint").alias("at_node"), *(nothing.cast("bigint").alias(name) for name in TUPLE),
        *(nothing.cast("bigint").alias(name) for name in ("max_age", "strictest", "back")),
    )  # fmt: skip
    asking = started.join(ways.slots, ["run", "unit"]).join(ways.epochs, ["run", "inc", "under"]).select(
        "run", "inc", "child", "of", col("start").alias("at"), lit(1).alias("asks"), lit(0).alias("order"),
        nothing.cast(tuple_type).alias("value"), "unit", "at_node",
        *(col(name).cast("long").alias(name) for name in TUPLE), "max_age", "strictest", "back",
    )  # fmt: skip
    before = Window.partitionBy("run", "inc", "child", "of").orderBy("at", "asks", "order")
    last = F.last("value", ignorenulls=True).over(before.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    nearest = F.min(F.when(col("value").isNotNull(), F.struct("back", "value")))
    read = (
        values.unionByName(asking)
        .withColumn("value", last)
        .where(col("asks") == 1)
        .groupBy("run", "inc", "at_node", "unit", *TUPLE, "child", "at", "max_age", "strictest")
        .agg(nearest.alias("nearest"))
        .select("*", "nearest.*")
    )
    origin = admitted.select(
        "run", *(col(name).alias(f"v_{name}") for name in LINEAGE), col("o_lo").alias("v_lo"), "o_node"
    )
    known = read.withColumns({f"v_{name}": col("value").getField(name) for name in LINEAGE})
    known = known.join(origin, ["run", *(f"v_{name}" for name in LINEAGE)], "left").join(
        ways.ahead, ["run", "at_node", "o_node"], "left"
    )
    return known.withColumns({"fresh": _fresh("max_age"), "everywhere": _fresh("strictest")}).select(
        "run", "unit", *TUPLE, "child",
        F.when(F.coalesce("fresh", F.lit(True)), col("value")).alias("value"),
        F.coalesce(col("fresh") & (col("back") == 0), F.lit(False)).alias("sure"),
        (col("value").isNull() | F.coalesce(~col("everywhere"), F.lit(False))).alias("missing"),
    )  # fmt: skip


def _fresh(most: str) -> Column:
    """Whether a value was young enough to be one; null: unknown."""
    age = col("at") - col("v_lo")
    return (
        F.when(col(most) == 0, F.lit(True))
        .when(col("at") - col("value.at") > col(most), F.lit(False))
        .when(age - col("ahead_hi") > col(most), F.lit(False))
        .when(age - col("ahead_lo") <= col(most), F.lit(True))
    )


def _results(mine: DataFrame, answers: DataFrame, ways: _WayTables) -> DataFrame:
    """RESULT place at lower upper: the delivered results of outputs that ask."""
    first = (
        mine.where(is_(rec.OUTPUT))
        .select(
            "run", col("ref").cast("long").alias("output"), col("at_node").cast("long").alias("out_node"), *LINEAGE,
            value(Output.ordinal).alias("ordinal"), instant(value(Output.at_ns)).alias("at"),
        )
        .join(ways.outputs, ["run", "output", "out_node"])
        .groupBy(*RESULT, "place")
        .agg(F.min("at").alias("at"))
    )  # fmt: skip
    return answers.where("delivered").select(*RESULT, "lower", "upper").join(first, RESULT)


# -- edges


def _line(data: DataFrame) -> DataFrame:
    """The same with `line`: each ordinal that a datum stems from."""
    shifted = (F.shiftright("ordinal", bits) for bits in (0, 8, 16, 24))
    return data.withColumn("line", F.explode(F.array_distinct(F.array(*shifted, lit(0)))))


def _edges(
    mine: DataFrame, started: DataFrame, reads: DataFrame, admitted: DataFrame, results: DataFrame, ways: _WayTables,
    persist: Persist,
) -> tuple[DataFrame, DataFrame]:  # fmt: skip
    """(DATUM child c_source c_epoch c_seq c_ordinal sure: which may be behind which; DATUM of all but results)."""
    merged = persist(
        mine.where(is_(rec.MERGED) & (value(Merged.partner_absent) == 0))
        .select(
            "run", col("ref").cast("long").alias("unit"), value(Merged.parent_source).alias("p_source"),
            value(Merged.parent_epoch).alias("p_epoch"), value(Merged.parent_seq).alias("p_seq"), *LINEAGE,
            value(Merged.ordinal).alias("ordinal"),
        )
        .join(ways.fusions, ["run", "unit"])
        .distinct()
    )  # fmt: skip
    within = persist(_within(mine, started, admitted, ways))
    read = reads.where(col("value").isNotNull())
    data = reduce(
        DataFrame.unionByName,
        [
            read.select("run", col("child").alias("place"), *(col(f"value.{name}").alias(name) for name in TUPLE)),
            merged.select("run", col("child").alias("place"), *TUPLE),
            within.select("run", col("child").alias("place"), *LINEAGE, lit(0).alias("ordinal")),
        ],
    )
    data = persist(data.distinct())
    every = data.unionByName(results.select(*DATUM))
    passed = every.join(ways.units, ["run", "place"])
    by_read = (
        _line(passed)
        .join(
            read.select(
                "run", "unit", *LINEAGE, col("ordinal").alias("line"), "child",
                *(col(f"value.{name}").alias(f"c_{name}") for name in TUPLE), "sure",
            ),
            ["run", "unit", *LINEAGE, "line"],
        )
    )  # fmt: skip
    parts = merged.select(
        "run", "unit", *(col(f"p_{name}").alias(name) for name in LINEAGE), "child",
        *(col(name).alias(f"c_{name}") for name in TUPLE), F.lit(True).alias("sure"),
    )  # fmt: skip
    by_fusion = passed.join(parts, ["run", "unit", *LINEAGE])
    inside = within.select(
        "run", *(col(f"w_{name}").alias(name) for name in LINEAGE), "child",
        *(col(name).alias(f"c_{name}") for name in LINEAGE), lit(0).alias("c_ordinal"), "sure",
    )  # fmt: skip
    by_window = every.join(inside, ["run", *LINEAGE])
    columns = [*DATUM, "child", *(f"c_{name}" for name in TUPLE), "sure"]
    found = reduce(DataFrame.unionByName, [each.select(*columns) for each in (by_read, by_fusion, by_window)])
    return persist(found.join(ways.below, ["run", "place", "child"])), data


def _within(mine: DataFrame, started: DataFrame, admitted: DataFrame, ways: _WayTables) -> DataFrame:
    """run w_source w_epoch w_seq child LINEAGE sure: tuples that are in a window, or may be."""
    start, end = instant(value(rec.Window.start)), instant(value(rec.Window.end))
    closed_at = instant(value(rec.Window.at_ns))
    closed = (
        mine.where(is_(rec.WINDOW) & (value(rec.Window.state) == rec.WINDOW_CLOSED))
        .select("run", "inc", "place", *LINEAGE, start.alias("start"), end.alias("end"), closed_at.alias("closed_at"))
        .groupBy("run", *LINEAGE)
        .agg(F.min(F.struct("inc", "place", "start", "end", "closed_at")).alias("first"))
        .select("run", *(col(name).alias(f"w_{name}") for name in LINEAGE), "first.*")
        .drop("place")
        .withColumnRenamed("w_source", "window")
        .join(ways.windows, ["run", "window"])
        .where(col("end") - col("start") <= col("length"))
        .withColumn("bucket", F.explode(F.sequence(_bucket("start"), _bucket("end"))))
    )
    tuples = (
        started.where(col("ordinal") == 0)
        .select("run", "inc", "unit", *LINEAGE, col("start").alias("came"))
        .join(ways.windows.select("run", "window", "unit", "length", "lateness", "counted"), ["run", "unit"])
        .join(_with_youngest(admitted), ["run", *LINEAGE])
        .where(col("counted") | ~F.coalesce(col("o_hi") + col("lateness") < col("y_lo"), F.lit(False)))  # else late
        .join(ways.positions, ["run", "window", "o_node"], "left")
        .withColumns(
            {
                "lo": F.when(col("counted"), col("seq")).otherwise(col("o_lo") + col("ahead_lo")),
                "hi": F.when(col("counted"), col("seq")).otherwise(col("o_lo") + col("ahead_hi")),
                "on_time": col("counted") | ~F.coalesce(col("o_lo") + col("lateness") < col("y_hi"), F.lit(False)),
            }
        )
        .where(col("lo").isNotNull())
        .withColumn("bucket", F.explode(F.sequence(_bucket("lo"), _bucket("hi"))))
        .select("run", "inc", "window", "bucket", *LINEAGE, "lo", "hi", "came", "on_time")
    )
    return (
        closed.join(tuples, ["run", "inc", "window", "bucket"])
        .where((col("start") <= col("hi")) & (col("lo") < col("end")) & (col("came") <= col("closed_at")))
        .select(
            "run", col("window").alias("w_source"), "w_epoch", "w_seq", "child", *LINEAGE,
            ((col("start") <= col("lo")) & (col("hi") < col("end")) & col("on_time")).alias("sure"),
        )
        .distinct()
    )  # fmt: skip


def _with_youngest(admitted: DataFrame) -> DataFrame:
    """With y_lo y_hi: the origin of the youngest of the source's lower numbers, null for the first."""
    lower = Window.partitionBy("run", "source", "epoch").orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    return admitted.withColumns({"y_lo": F.max("o_lo").over(lower), "y_hi": F.max("o_hi").over(lower)})


def _bucket(position: str) -> Column:
    """The number of the stretch, as long as the source's windows, in which a position lies."""
    return F.expr(f"({position} - pmod({position}, length)) div length")


# -- what is behind


def _number() -> Column:
    return F.struct(col("epoch").cast("long").alias("epoch"), col("seq").cast("long").alias("seq"))


def _own(data: DataFrame, admitted: DataFrame, ways: _WayTables) -> DataFrame:
    """DATUM named lo hi newest sure: of each tuple itself."""
    return (
        data.join(ways.canonical, ["run", "source"])
        .join(admitted, ["run", *LINEAGE], "left")
        .select(
            *DATUM, "named", F.coalesce(col("o_lo"), lit(-INSTANT_LIMIT)).alias("lo"), col("o_hi").alias("hi"),
            _number().alias("newest"), _number().alias("sure"),
        )
    )  # fmt: skip


def _own_of_results(results: DataFrame, ways: _WayTables) -> DataFrame:
    """As `_own`; the origin of a result's own tuple is in its latency alone."""
    return results.join(ways.canonical, ["run", "source"]).select(
        *DATUM, "named", lit(INSTANT_LIMIT).alias("lo"), F.lit(None).cast("bigint").alias("hi"),
        _number().alias("newest"), _number().alias("sure"),
    )  # fmt: skip


def _up(own: DataFrame, edges: DataFrame, extents: DataFrame) -> DataFrame:
    """DATUM named lo hi newest sure: what is behind each, by what is known to be behind those behind it."""
    child = extents.select(
        "run", col("place").alias("child"), *(col(name).alias(f"c_{name}") for name in TUPLE), "named", "lo", "hi",
        "newest", col("sure").alias("newest_sure"),
    )  # fmt: skip
    below = edges.join(child, ["run", "child", *(f"c_{name}" for name in TUPLE)]).select(
        *DATUM, "named", "lo", F.when(col("sure"), col("hi")).alias("hi"), "newest",
        F.when(col("sure"), col("newest_sure")).alias("sure"),
    )  # fmt: skip
    return (
        own.unionByName(below)
        .groupBy(*DATUM, "named")
        .agg(
            F.min("lo").alias("lo"), F.min("hi").alias("hi"), F.max("newest").alias("newest"),
            F.max("sure").alias("sure"),
        )
    )  # fmt: skip


__all__ = ["look_behind"]
