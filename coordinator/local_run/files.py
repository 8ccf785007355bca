"""The files of a local run, by convention: what stands beside the query is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coordinator.errors import Mistake, bad_file
from coordinator.solve.option_checks import BadOptionError
from coordinator.spec.files.yaml_source import nearest
from coordinator.units import duration_ns
from protos.plan.arrivals import BurstArrival, JcpArrival, RateArrival, TraceArrival
from protos.plan.sources import Source
from protos.plan_document import Plan

QUERY, CLUSTER, OPERATORS, FEED = "query.yaml", "cluster.yaml", "operators.py", "feed.jsonl"
FORMATS = (".jsonl", ".csv", ".mcap")
UNITS = ("s", "ms", "us", "ns")
STEADY = "--steady"  # of `node-agent feed`: a delay puts off all that follow


def inputs(given: Sequence[Path]) -> tuple[list[Path], Path]:
    """Queries and the cluster: of a directory its query.yaml and cluster.yaml, of nothing those here, of one query the
    cluster.yaml beside it. Raises BadInputError where there is none."""
    if len(given) == 1 and not given[0].is_dir():
        queries, cluster = [given[0]], given[0].parent / CLUSTER
        if given[0].name == CLUSTER:
            queries, cluster = [given[0].parent / QUERY], given[0]
    elif len(given) > 1:
        queries, cluster = list(given[:-1]), given[-1]
    else:
        folder = given[0] if given else Path()
        queries, cluster = [folder / QUERY], folder / CLUSTER
    for path in (*queries, cluster):
        if not path.exists():
            mend = "name query.yaml and cluster.yaml, or begin with 'coordinator init DIR'"
            raise bad_file(path, "no_file", "is not there", mend)
    return queries, cluster


def operators(given: Sequence[Path], beside: Sequence[Path]) -> list[Path]:
    """Files with operators for the agents: those given, else operators.py of the first folder that has one. Raises
    BadInputError."""
    for file in given:
        if not file.is_file():
            raise bad_file(file, "no_file", "is no file", "give a Python file with operators")
    found = [folder / OPERATORS for folder in beside if (folder / OPERATORS).is_file()]
    return list(given) or found[:1]


@dataclass(frozen=True)
class Pace:
    """How lines of a file follow each other. options: of `node-agent feed`; wording: the same in words."""

    options: tuple[str, ...]
    wording: str


@dataclass(frozen=True)
class Feed:
    """A file for a source. repeated: from its start again until the time is over."""

    source: str
    path: Path
    pace: Pace
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wishes:
    """What was asked for on the command line, by source."""

    files: Mapping[str, str]
    rates: Mapping[str, str]
    by: Mapping[str, str]
    topics: Mapping[str, str]

    def check(self, sources: Mapping[str, Source]) -> None:
        """Raises BadOptionError where one names a source that is not there, or is no rate or unit."""
        wrong = []
        for option, values in (("feed", self.files), ("rate", self.rates), ("by", self.by), ("topic", self.topics)):
            for name, value in values.items():
                if name not in sources:
                    text = f"--{option} {name}={value}: source '{name}' is unknown"
                    wrong.append(Mistake("unknown_source", text, nearest(name, sources), f"--{option}"))
                elif sources[name].pull is not None:
                    text = f"--{option} {name}={value}: the node of '{name}' makes its tuples itself"
                    wrong.append(Mistake("made_by_node", text, f"leave --{option} out", f"--{option}"))
        for name, value in self.rates.items():
            if not _is_rate(value):
                text = f"--rate {name}={value}: give tuples per second, above 0 and at most 1000000"
                wrong.append(Mistake("bad_rate", text, subject="--rate"))
            if name in self.by:
                text = f"--rate {name}={value}: and --by {name}={self.by[name]} exclude each other"
                wrong.append(Mistake("rate_and_by", text, subject="--rate"))
        for name, value in self.by.items():
            if ":" in value and value.rpartition(":")[2] not in UNITS:
                text = f"--by {name}={value}: the unit after the colon is one of {', '.join(UNITS)}"
                wrong.append(Mistake("unknown_unit", text, subject="--by"))
        if wrong:
            raise BadOptionError(*wrong)


def pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    """SOURCE=VALUE, several. Raises BadOptionError."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise BadOptionError(
                Mistake("no_source", f"--{option} {text}: write --{option} SOURCE=...", subject=f"--{option}")
            )
        if name in found:
            said = f"--{option} {text}: source '{name}' has one already"
            raise BadOptionError(Mistake("option_twice", said, subject=f"--{option}"))
        found[name] = value
    return found


def seconds(text: str | None) -> float | None:
    """Of --for. Raises BadOptionError."""
    if text is None:
        return None
    try:
        ns = duration_ns(text)
    except ValueError as error:
        raise BadOptionError(Mistake.of("bad_duration", f"--for: {error}", "--for")) from None
    if ns <= 0:
        raise BadOptionError(Mistake("bad_duration", f"--for {text}: give more than 0, like 10s", subject="--for"))
    return ns / 1e9


def feeds(plan: Plan, wishes: Wishes, beside: Sequence[Path]) -> tuple[list[Feed], list[str]]:
    """What feeds the sources of a plan that do not make their tuples themselves, and those that nothing feeds. Raises
    BadInputError where that is all of all sources or a file is missing, BadOptionError as of `Wishes.check`."""
    wishes.check(plan.graph.sources)
    sources = {name: source for name, source in plan.graph.sources.items() if source.pull is None}
    paths = {name: Path(value) for name, value in wishes.files.items()}
    for name in sources:
        for path in (folder / f"{name}{suffix}" for folder in beside for suffix in FORMATS):
            if name not in paths and path.is_file():
                paths[name] = path
    left = [name for name, source in sources.items() if name not in paths and source.connector is None]
    general = [folder / FEED for folder in beside if (folder / FEED).is_file()]
    if len(left) == 1 and general and general[0] not in paths.values():
        paths[left.pop()] = general[0]
    elif len(left) > 1 and general and not paths:
        text = f"is for one of the sources {', '.join(left)}"
        raise bad_file(general[0], "feed_of_several_sources", text, f"call it like that one, as in {left[0]}.jsonl")
    for path in paths.values():
        if not path.exists():
            raise bad_file(path, "no_file", "is not there", "--feed SOURCE=FILE names a file with tuples")
    if not paths and len(left) == len(plan.graph.sources):
        text = f"has nothing to feed: write {left[0]}.jsonl beside it, a tuple in JSON per line, or give --feed"
        raise bad_file(beside[0] / QUERY, "nothing_to_feed", text)
    ordered = [name for name in sources if name in paths]
    return [_feed(name, paths[name], sources[name], wishes) for name in ordered], left


def _feed(name: str, path: Path, source: Source, wishes: Wishes) -> Feed:
    mcap = path.suffix.lower() == ".mcap"
    options = ("--topic", wishes.topics[name]) if name in wishes.topics else ()
    if name in wishes.rates:
        rate = wishes.rates[name]
        return Feed(name, path, Pace(("--rate", rate), f"at {rate} a second"), options)
    if name in wishes.by:
        field, colon, unit = wishes.by[name].rpartition(":")
        words = ("--by", field, "--unit", unit) if colon else ("--by", unit)
        return Feed(name, path, Pace(words, f"with the gaps of '{field or unit}'"), options)
    if mcap:
        return Feed(name, path, Pace((), "with the gaps of the recording"), options)
    rate = f"{declared_rate(source):.6g}"
    limited = source.limit is not None and declared_rate(replace(source, limit=None)) > declared_rate(source)
    why = "as 'max_rate' lets pass" if limited else "as it is declared"
    return Feed(name, path, Pace(("--rate", rate, STEADY), f"at {rate} a second, {why}"), options)


def declared_rate(source: Source) -> float:
    """Tuples per second, in equal gaps, that a source of plan.json may always send: as declared, within max_rate."""
    match source.arrival:
        case BurstArrival() as arrival:
            rate = arrival.burst * 1e9 / arrival.period_ns
        case RateArrival() as arrival:
            rate = float(arrival.rate_per_s)
        case JcpArrival() as arrival:
            rate = 1e9 / arrival.period_ns
        case TraceArrival() as arrival:  # n tuples in a row span no less than they do in the recording
            gaps = zip(arrival.counts, arrival.spans_ns, strict=True)
            rate = 1e9 / max(span / (count - 1) for count, span in gaps if count > 1)
    limit = source.limit
    return min(rate, limit.tuples * 1e9 / limit.span_ns) if limit else rate


def _is_rate(text: str) -> bool:
    try:
        return 0 < float(text) <= 1e6
    except ValueError:
        return False
