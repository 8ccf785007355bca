"""[A] 1.3 and 4.2: the same experiments by maximum urgency first, and on Zipf streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from infra.papers.batching.batch_length import AS, EQUAL, LENGTH, TREES, Draws, less, missed, summary, sweep
from infra.papers.batching.query_trees import RANKS, Setting, Streams
from infra.papers.claims import holds
from infra.papers.reproduction import SEEDS, Effort, Figure, Tell

NAMES = ("taat", "bts", "ats")
STREAMS: tuple[Streams, ...] = ("poisson", "zipf gaps", "zipf rates")


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """MUF, then Zipf."""
    seeds, base = SEEDS[effort], Setting(0.8, length=LENGTH[effort], slower=TREES)
    tell("maximum urgency first, Zipf")
    found = {each: sweep(replace(base, streams=each), [0.8], seeds, NAMES)[0.8] for each in STREAMS}
    muf = sweep(base, [0.8], seeds, tuple(f"{name} muf" for name in NAMES))[0.8]
    yield urgency([edf | other for edf, other in zip(found["poisson"], muf, strict=True)], seeds)
    yield zipf(found, seeds)


def urgency(draws: Draws, seeds: list[int]) -> Figure:
    """MUF beside EDF."""
    return Figure(
        "section 1.3: priorities by maximum urgency first, lambda = 0.8 (SDMR, %)",
        [],
        {name: str(missed(draws, name)) for name in draws[0]}
        | {"BTS - BTS by MUF": str(less(draws, "bts muf", "bts"))},
        [
            holds("batches beat one task at a time under MUF too",
                  [each["bts muf"].missed < each["taat muf"].missed for each in draws]),
            holds("ATS is BTS with k = 1 under MUF too, to the tuple",
                  [each["ats muf"].missed == each["bts muf"].missed for each in draws]),
            holds("without dropping MUF misses no more than EDF: it keeps the critical queries, those of the shortest "
                  "deadlines that fit into the CPU",
                  [each["bts muf"].missed <= each["bts"].missed for each in draws]),
        ],
        "The paper names MUF as another rule and shows no run of it. MUF is Stewart's, which [A] cites as [14]; by "
        f"(2), deadline less the time, MUF would be EDF. {AS}",
        seeds,
    )  # fmt: skip


def zipf(found: dict[Streams, Draws], seeds: list[int]) -> Figure:
    """Two readings of Zipf's law beside Poisson streams."""
    poisson = found["poisson"]
    kinds: tuple[Streams, ...] = ("zipf gaps", "zipf rates")
    return Figure(
        "section 4.2: Zipf streams, lambda = 0.8 (SDMR, %)",
        [holds(f"much as with Poisson streams: {kind}, each policy within {EQUAL} points",
               [abs(each[name].missed - before[name].missed) <= EQUAL
                for each, before in zip(found[kind], poisson, strict=True) for name in NAMES], "runs")
         for kind in kinds],
        {kind: summary(draws) for kind, draws in found.items()},
        [
            holds("batches beat one task at a time with either",
                  [each["bts"].missed < each["taat"].missed for kind in kinds for each in found[kind]], "runs"),
            holds("ATS is BTS with either, to the tuple",
                  [each["ats"].missed == each["bts"].missed for kind in kinds for each in found[kind]], "runs"),
        ],
        f"Zipf's law for the gaps: r times the least gap with probability 1/r, r up to {RANKS}, the same mean; or for "
        "the streams' rates: the n-th has 1/n of the first one's, Poisson each, so that a third of all tuples go to "
        f"one tree. The same trees as with Poisson streams. {AS}",
        seeds,
    )  # fmt: skip
