"""[A] 1.3 and 4.2: the same experiments by maximum urgency first, and on Zipf streams."""

from __future__ import annotations

from collections.abc import Iterator

from infra.papers.batching.batch_length import HOW, LAMBDA, LENGTH, missed, summary
from infra.papers.batching.query_trees import RANKS, Result, Setting, Streams, measure
from infra.papers.pool import spread
from infra.papers.reproduction import Curve, Effort, Figure, Plot, Tell

ORDERED = ("taat", "taat1", "bts", "bts1", "ats", "ats1")
NAMES = ("taat", "taat1", "bts", "bts1", "ats", "adaptive", "ideal")
STREAMS: tuple[Streams, ...] = ("poisson", "zipf gaps", "zipf rates")
Runs = dict[float, dict[str, Result]]


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """MUF, then Zipf."""
    length = LENGTH[effort]
    rates = [0.5] if effort == "tiny" else [0.2, 0.5, 0.8]
    tell("maximum urgency first")
    names = (*ORDERED, *(f"{name} muf" for name in ORDERED))
    found = spread(measure, [(Setting(rate, length=length), names) for rate in rates])
    yield _urgency(dict(zip(rates, found, strict=True)))
    tell("Zipf")
    work = [(Setting(rate, length=length, streams=each), NAMES) for each in STREAMS for rate in rates]
    rest = iter(spread(measure, work))
    yield _zipf({each: {rate: next(rest) for rate in rates} for each in STREAMS})


def _urgency(found: Runs) -> Figure:
    grown = sum(each[f"{name} muf"].grown for each in found.values() for name in ("ats", "ats1"))
    far = all(
        each[f"taat{end} muf"].missed >= each[f"bts{end} muf"].missed for each in found.values() for end in ("", "1")
    )
    same = max(abs(each["ats muf"].missed - each["bts muf"].missed) for each in found.values())
    gain = max(each["bts"].missed - each["bts muf"].missed for each in found.values())
    return Figure(
        "section 1.3: priorities by maximum urgency first (SDMR, %)",
        {"priority": "EDF, MUF or another rule"},
        {f"lambda {rate:g}": summary(each) for rate, each in found.items()}
        | {"ATS - BTS, largest": round(same, 2), "times that k grew": grown},
        far and same < 1,
        "What holds under EDF holds under MUF: batches beat one task at a time, and ATS is BTS with k = 1. In "
        "overload, "
        "where nothing is dropped, MUF keeps the critical queries (those of the shortest deadlines that fit into "
        "the CPU) "
        f"and lets the others wait, up to {gain:.1f} points below EDF for BTS; with dropping it is no better than EDF. "
        "For TAAT the critical set is taken too large, since decisions are not a query's own use of the CPU.",
        "MUF is Stewart's, which [A] cites as [14]; by (2), deadline less the time, MUF would be EDF. " + HOW,
        [1],
        [
            Plot(
                "EDF and MUF",
                LAMBDA,
                "SDMR, %",
                [
                    Curve(name + end, list(found), [each[name + end].missed for each in found.values()])
                    for name in ("taat", "bts", "bts1")
                    for end in ("", " muf")
                ],
            )
        ],
    )


def _zipf(found: dict[Streams, Runs]) -> Figure:
    poisson = found["poisson"]
    batches = all(
        each["taat"].missed >= each["bts"].missed and each["taat1"].missed >= each["bts1"].missed
        for runs in found.values()
        for each in runs.values()
    )
    apart = {
        streams: {
            name: max(abs(each[name].missed - poisson[rate][name].missed) for rate, each in runs.items())
            for name in NAMES
        }
        for streams, runs in found.items()
        if streams != "poisson"
    }
    return Figure(
        "section 4.2: Zipf streams (SDMR, %)",
        {"results": "much as with Poisson streams"},
        {
            f"{streams}, lambda {rate:g}": summary(each)
            for streams, runs in found.items()
            if streams != "poisson"
            for rate, each in runs.items()
        }
        | {
            f"{streams}, largest difference from Poisson (points)": ", ".join(
                f"{name} {value:.1f}" for name, value in of.items()
            )
            for streams, of in apart.items()
        },
        batches,
        "Who is better than whom does not change: batches beat one task at a time, ATS is BTS. The paper prints "
        "no more "
        "than that the results are much the same. "
        f"With Zipf's gaps SDMR differs by at most {max(apart['zipf gaps'].values()):.1f} points; with Zipf's "
        "rates by up "
        f"to {max(apart['zipf rates'].values()):.1f}: the busiest query has a third of all tuples, so its tree "
        "decides.",
        f"Zipf's law for the gaps: r times the least gap with probability 1/r, r up to {RANKS}, the same mean; or "
        "for the "
        "streams' rates: the n-th has 1/n of the first one's, Poisson each. " + HOW,
        [1],
        [missed(streams, runs) for streams, runs in found.items() if streams != "poisson"],
    )
