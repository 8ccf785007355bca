"""[A] theorem 1 and lemma 1, and what arithmetic says of overload: checks of the runs, not in the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.papers.batching.batch_length import HOW, LENGTH
from infra.papers.batching.query_trees import DEADLINES_S, MS, PHI_NS, SLOWER, Result, S, Setting, measure
from infra.papers.pool import spread
from infra.papers.reproduction import Curve, Effort, Figure, Plot, Tell

ARITHMETIC = ((0.2, "taat1", 25.6, 2), (0.5, "taat1", 66.3, 2), (0.6, "bts1", 13.0, 3), (0.8, "bts1", 29.3, 3))
Batch = tuple[int, int]  # phi in ms, k; those of a group have one length k phi
LENGTHS: tuple[tuple[Batch, ...], ...] = (
    ((10, 10), (20, 5), (50, 2), (100, 1)),
    ((10, 5), (50, 1)),
)
ALL = [case for group in LENGTHS for case in group]
LONG = 50  # basic batches of PHI: as long as the longest deadline


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """Theorem 1, bounds on overload, batches of equal length, and the tenth against the whole."""
    length = LENGTH[effort]
    tell("theorem 1")
    rates = (0.2, 0.5, 0.8) if effort != "tiny" else (0.5,)
    yield _theorem(rates, spread(counted, [(rate, length) for rate in rates]))
    tell("arithmetic of overload")
    yield _arithmetic(length)
    if effort != "tiny":
        tell("batches of equal length")
        yield _lengths(length)
    if effort == "full":
        tell("all 100 queries")
        yield _whole(length)


def counted(rate: float, length: int) -> dict[str, Result]:
    """Runs whose decisions are counted; `bts1, k = 50`: batches may be as long as the longest deadline."""
    found = measure(Setting(rate, length=length), ("taat", "bts", "bts1", "ats", "ats1"))
    long = measure(Setting(rate, length=length), ("bts1",), first_k=LONG)
    return found | {f"bts1, k = {LONG}": long["bts1"]}


def decisions(each: Result, queries: int = 100 // SLOWER) -> float:
    """Per query."""
    return each.decisions / queries


def limits(each: Result) -> tuple[float, float]:
    """Of decisions per query: T1/U, U the longest deadline; T1/phi, and the basic batches that are cut by the ends."""
    return each.arrivals_s / max(DEADLINES_S), each.arrivals_s * S / PHI_NS + 2


def _theorem(rates: tuple[float, ...], runs: list[dict[str, Result]]) -> Figure:
    names = [name for name in runs[0] if name != "taat"]
    inside = all(
        limits(found[name])[0] <= decisions(found[name]) <= limits(found[name])[1] for found in runs for name in names
    )
    shown = [*names, "taat"]
    return Figure(
        "theorem 1 and lemma 1: decisions per query",
        {"every batch policy": "at least T1/U", "ATS": "T1/U to T1/phi"},
        {
            f"lambda {rate:g}": f"T1/U {limits(found['bts'])[0]:.0f}, T1/phi {limits(found['bts'])[1] - 2:.0f}; "
            + ", ".join(f"{name} {decisions(found[name]):.0f}" for name in shown)
            for rate, found in zip(rates, runs, strict=True)
        },
        inside,
        ("Every batch policy is between the two" if inside else "Not every batch policy is between the two")
        + ", where streams are collected for phi; one task at a time is far above. Lemma 1's limit is not reached: "
        f"also k = {LONG} takes what has arrived. 3.4 concludes that ATS finds k near U/phi; its k is 1, so it is at "
        "the upper limit.",
        "U: the longest deadline, 5 s; phi = 0.1 s. " + HOW,
        [1],
        [
            Plot(
                "decisions per query",
                "lambda, tuples per ms and stream",
                "decisions",
                [Curve(name, list(rates), [decisions(found[name]) for found in runs]) for name in names]
                + [
                    Curve("T1/U", list(rates), [limits(found["bts"])[0] for found in runs]),
                    Curve("T1/phi", list(rates), [limits(found["bts"])[1] for found in runs]),
                ],
            )
        ],
    )


def _arithmetic(length: int) -> Figure:
    found = spread(measure, [(Setting(rate, length=length, equal=True), (name,)) for rate, name, _, _ in ARITHMETIC])
    rows = [(rate, name, each[name]) for (rate, name, _, _), each in zip(ARITHMETIC, found, strict=True)]
    outside = max(max(each.bounds[0] - each.missed, each.missed - each.bounds[1]) for _, _, each in rows)
    near = all(abs(each.missed - value) <= by for (_, _, each), (*_, value, by) in zip(rows, ARITHMETIC, strict=True))
    return Figure(
        "figure 8: overload by arithmetic, equal costs of 22 us (SDMR, %)",
        {},
        {
            f"{name} at {rate:g}": f"{each.missed:.1f}, bounds {each.bounds[0]:.1f} to {each.bounds[1]:.1f}"
            for rate, name, each in rows
        },
        None,
        "Not in the paper; it checks the runs. With dropping, SDMR lies between 1 - (T + Dmax)/W and 1 - (T + "
        "Dmean)/W, "
        f"W = N (c + s/n), n the mean batch: all but {max(0.0, outside):.1f} points. "
        + ("Expected are " if near else "Not met is at least one of ")
        + ", ".join(f"{value:g} +- {by} ({name} at {rate:g})" for rate, name, value, by in ARITHMETIC)
        + ".",
        HOW,
        [1],
    )


def apart(length: int, equal: bool, rate: float = 0.6, cases: Sequence[Batch] = ALL) -> dict[int, list[float]]:
    """SDMR of `bts1` by the length k phi in ms."""
    found = spread(measure, [(Setting(rate, length=length, equal=equal), ("bts1",), phi * MS, k) for phi, k in cases])
    by_length: dict[int, list[float]] = {}
    for (phi, k), each in zip(cases, found, strict=True):
        by_length.setdefault(phi * k, []).append(each["bts1"].missed)
    return by_length


def _lengths(length: int) -> Figure:
    found = {name: apart(length, name == "equal") for name in ("equal", "drawn")}
    most = {name: max(max(each) - min(each) for each in lengths.values()) for name, lengths in found.items()}
    return Figure(
        "figure 4: batches of equal length k phi (SDMR, points)",
        {},
        {
            f"{name} costs, k phi {length_ms} ms": " ".join(f"{each:.1f}" for each in values)
            for name, lengths in found.items()
            for length_ms, values in lengths.items()
        }
        | {f"largest difference, {name} costs": round(each, 1) for name, each in most.items()},
        None,
        "Not in the paper; it says what its k means. With equal costs it is the length k phi that counts, within "
        f"{most['equal']:.1f} points (2 are expected). With the costs of table 1 it is {most['drawn']:.1f}: a batch "
        "holds what of the k basic ones is there, and which queries starve differs from run to run.",
        "BTS1, lambda = 0.6; (phi, k) in ms: "
        + "; ".join(", ".join(f"({phi}, {k})" for phi, k in group) for group in LENGTHS)
        + ". "
        + HOW,
        [1],
    )


def _whole(length: int) -> Figure:
    names = ("taat1", "bts", "bts1", "adaptive")
    work = [(Setting(0.5, length=length, whole=whole), (name,)) for whole in (True, False) for name in names]
    found = [each[name].missed for each, (_, (name,)) in zip(spread(measure, work), work, strict=True)]
    whole, tenth = found[: len(names)], found[len(names) :]
    most = max(abs(a - b) for a, b in zip(whole, tenth, strict=True))
    return Figure(
        "a tenth of the queries against all 100, lambda = 0.5 (SDMR, %)",
        {},
        {name: f"a tenth {a:.1f}, all {b:.1f}" for name, a, b in zip(names, tenth, whole, strict=True)},
        None,
        "The other rows run a tenth of the queries on a machine ten times slower. With each of their trees ten "
        "times on "
        f"the printed machine, a million tuples, SDMR differs by at most {most:.1f} points.",
        HOW,
        [1],
    )
