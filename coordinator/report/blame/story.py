"""A miss as a story: what happened on its way, with instants that count from where it begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coordinator.report.report_document import Miss, MissHop, WaitedFor
from coordinator.units import counted, show_ns

SHORT_NS = 1_000  # a part of the way that is left out
MOST_CAUSES = 2
ENDS = {"late": "came {} too late", "undecidable": "may have been late"}


def story(miss: Miss) -> str:
    """A few sentences. Instants of several clocks are put one behind the other."""
    parts = [_what(miss), *_way(miss.hops)]
    parts += [f"{'Also' if n else 'Cause'}: {each.text}" for n, each in enumerate(miss.causes[:MOST_CAUSES])]
    return ". ".join(parts) + "."


def _what(miss: Miss) -> str:
    of = f"{miss.output}: {miss.source} {miss.epoch}/{miss.seq}"
    if miss.latency_ns is None:
        return f"{of} was {miss.outcome} on {miss.node}"
    over = show_ns(max(0, miss.latency_ns - miss.deadline_ns))
    return f"{of} {ENDS[miss.outcome].format(over)}, {show_ns(miss.latency_ns)} after its origin"


def _way(hops: Sequence[MissHop]) -> Iterator[str]:
    until_ns = 0
    for hop in hops:
        since_ns, took_ns = until_ns, max(0, hop.until_ns - hop.from_ns)
        until_ns += took_ns
        if took_ns >= SHORT_NS:
            yield f"At {since_ns / 1e6:.3f} ms {_hop(hop, show_ns(took_ns))}"


def _hop(hop: MissHop, took: str) -> str:
    place = _unit(hop.place)
    ahead = ", ".join(map(_ahead, hop.waited_for))
    told = {
        "admission": f"{place} has it; {hop.node} admits it {took} later",
        "queue": f"it waits {took} for {place} on {hop.node}" + (f", behind {ahead}" if ahead else ""),
        "run": f"{place} runs {took} on {hop.node}",
        "link": f"it leaves {' for '.join(hop.place)} and takes {took}",
        "rest": f"it is held back {took} on {hop.node}" + (f", for the link to {hop.place[-1]}" if hop.place else ""),
    }
    return told[hop.kind]


def _ahead(each: WaitedFor) -> str:
    return f"{counted(each.instances, 'instance')} of {_unit(each.operators)}"


def _unit(operators: Sequence[str]) -> str:
    return operators[0] if len(operators) == 1 else f"{operators[0]}..{operators[-1]}" if operators else "it"


__all__ = ["story"]
