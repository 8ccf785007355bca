"""The tables and their columns. Times are nanoseconds; null is "not known", or "there is none"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["text", "integer", "share", "yes or no"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column, and what it says."""

    name: str
    kind: Kind
    about: str


@dataclass(frozen=True, slots=True)
class ResultTable:
    """One table: a folder of its name with Parquet files. about: what a row is."""

    name: str
    about: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        """As pyarrow has it."""
        import pyarrow as pa  # the tables are named without it

        types: dict[Kind, pa.DataType] = {
            "text": pa.string(), "integer": pa.int64(), "share": pa.float64(), "yes or no": pa.bool_(),
        }  # fmt: skip
        return pa.schema([pa.field(each.name, types[each.kind]) for each in self.columns])


def _text(name: str, about: str) -> Column:
    return Column(name, "text", about)


def _number(name: str, about: str) -> Column:
    return Column(name, "integer", about)


def _share(name: str, about: str) -> Column:
    return Column(name, "share", about)


_OUTPUT, _NODE, _BOOT = _text("output", "name"), _text("node", "name"), _text("boot", "of the incarnation")
_LINEAGE = (
    _text("source", "of the tuple, or of the window"),
    _number("epoch", "incarnation of the source's node"),
    _number("seq", "the tuple's number there"),
    _number("ordinal", "which of several results of one tuple"),
)

OUTPUTS = ResultTable(
    "outputs",
    "an output",
    (
        _OUTPUT, _text("query", "whose it is"), _number("deadline_ns", "end to end"),
        _number("bound_ns", "what the last plan says that no result exceeds"), _number("met", "results in time"),
        _number("late", "results"), _number("shed", "results"), _number("lost", "results"),
        _number("undecidable", "results of which nobody can tell"),
        _number("shed_unsure", "shed, and perhaps filtered else"),
        _number("lost_unsure", "lost, and perhaps filtered else"),
        _number("delivered", "results that came, in time or not"),
        _share("miss_ratio", "(late + shed + lost) / (met + late + shed + lost)"),
        _share("missed_of_offered_lo", "share of what was offered that was missed, at least"),
        _share("missed_of_offered_hi", "at most"),
    ),
)  # fmt: skip
QUANTILES = ResultTable(
    "quantiles",
    "a point of the distribution of an output's latencies",
    (_OUTPUT, _share("share", "of the delivered results"), _number("latency_ns", "that no more of them exceed")),
)
RESULTS = ResultTable(
    "results",
    "an expected result whose tuple is known",
    (
        _OUTPUT, *_LINEAGE,
        _text("outcome", "met, late, shed, policed, lost, undecidable, or one of the middle three with _unsure"),
        _number("latency_lo_ns", "at least, where it was delivered"), _number("latency_hi_ns", "at most"),
        _number("deadline_ns", "of the output"),
    ),
)  # fmt: skip
HOPS = ResultTable(
    "hops",
    "a place on the way of an output's delivered results",
    (
        _OUTPUT, _text("hop", "unit, link, source or rest"), _text("kind", "age, queue, run, link or rest"),
        _number("mean_ns", "over all results"), _number("tail_mean_ns", "over the slowest hundredth"),
        _share("share", "of the latency"), _share("tail_share", "of that of the slowest"),
    ),
)  # fmt: skip
UNITS = ResultTable(
    "units",
    "a task unit in one incarnation of its node",
    (
        _NODE, _BOOT, _number("unit", "number in the plan"), _text("operators", "in order, with + between"),
        _number("tuples", "that ended in it"), _number("ran_ns", "in all"), _number("longest_ns", "instance"),
        _number("queued_ns", "from release to start, in all"), _number("longest_queued_ns", "of one instance"),
        _share("utilisation", "of the time between the node's first and last instance"),
    ),
)  # fmt: skip
LINKS = ResultTable(
    "links",
    "a link in one incarnation of its sender",
    (
        _NODE, _BOOT, _text("peer", "who receives"), _number("sent", "tuples, again ones among them"),
        _number("lost", "tuples that the sender gave up or could not send"),
        _number("first_ns", "instant of the first one, on the sender's clock"), _number("last_ns", "and the last"),
    ),
)  # fmt: skip
SOURCES = ResultTable(
    "sources",
    "a source",
    (
        _text("source", "name"), _number("offered", "tuples"), _number("admitted", "tuples"),
        _number("refused", "tuples, for any reason"), _number("policed", "of the admitted, beyond what was declared"),
    ),
)  # fmt: skip
REFUSALS = ResultTable(
    "refusals",
    "a reason why tuples of a source were refused",
    (_text("source", "name"), _text("reason", "why"), _number("tuples", "refused")),
)
WINDOWS = ResultTable(
    "windows",
    "a window operator that leads to an output",
    (
        _OUTPUT, _text("operator", "of the windows"), _number("all", "windows that should have come"),
        _number("given", "closed with a result"), _number("on_time", "whose result met its deadline"),
        _number("abandoned", "for any cause"), _number("skipped", "never opened, as it was too late or too many"),
        _number("unknown", "nobody can tell"), _share("share", "on time or filtered, of all"),
        _share("load", "at the entry"), _share("long_run_share", "that no policy exceeds at that load"),
    ),
)  # fmt: skip
AGES = ResultTable(
    "ages",
    "the age of the data behind an output's results, or the reaction to a source",
    (
        _OUTPUT, _text("kind", "age or reaction"), _text("source", "that it reacts to; of an age empty"),
        _number("limit_ns", "that the output asks for"), _number("bound_ns", "what the last plan says"),
        _number("counted", "results of an age, tuples of a reaction"), _number("above", "the limit, for certain"),
        _number("undecidable", "that may be above it"), _number("unanswered", "tuples that no result followed in time"),
        _number("undecided", "tuples that no result has followed yet"),
        _number("above_bound", "the plan's bound, for certain"), _share("share_lo", "of them above, at least"),
        _share("share_hi", "at most"), _number("p50_ns", "upper bound"), _number("p99_ns", "upper bound"),
        _number("max_ns", "upper bound"),
    ),
)  # fmt: skip
AGE_HOPS = ResultTable(
    "age_hops",
    "where the data behind an output's oldest results spent their time",
    (
        _OUTPUT, _text("hop", "unit, link, source, side input, window, fusion or rest"),
        _text("kind", "admission, queue, run, link, side, window, inputs or rest"),
        _number("mean_ns", "over those results"), _share("share", "of their age"),
    ),
)  # fmt: skip
LEDGER = ResultTable(
    "ledger",
    "how obligations ended",
    (_text("outcome", "how"), _text("cause", "of shed and lost ones, else empty"), _number("obligations", "so many")),
)
MISSES = ResultTable(
    "misses",
    "a cause of one of the worst missed results",
    (
        _OUTPUT, *_LINEAGE, _text("outcome", "late, shed, lost or undecidable"),
        _number("latency_ns", "at least, where it was delivered"), _number("rank", "of the cause, heaviest first: 0"),
        _text("cause", "kind"), _text("node", "where"), _text("subject", "operator, source or link that it names"),
        _number("ns", "of the latency"), _text("text", "one sentence"),
    ),
)  # fmt: skip
CAUSES = ResultTable(
    "causes",
    "a main cause of an output's missed results",
    (_OUTPUT, _text("cause", "kind"), _number("results", "with that main cause")),
)
COMPLETENESS = ResultTable(
    "completeness",
    "the trace of one incarnation",
    (
        _NODE, _BOOT, _text("status", "clean, crashed, damaged or unknown"),
        _number("records", "that there should be"), _number("found", "that are there"),
        _number("dropped", "that the node could not keep"), Column("complete", "yes or no", "nothing is missing"),
    ),
)  # fmt: skip
TABLES = (
    OUTPUTS, QUANTILES, RESULTS, HOPS, UNITS, LINKS, SOURCES, REFUSALS, WINDOWS, AGES, AGE_HOPS, LEDGER, MISSES, CAUSES,
    COMPLETENESS,
)  # fmt: skip
