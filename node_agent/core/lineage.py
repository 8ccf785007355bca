"""The lineage of a tuple: its source's number and incarnation, its own number, and an interval of its origin."""

Lineage = tuple[int, int, int, int, int, int]  # source, epoch, seq, ordinal, origin_lo_ns, origin_hi_ns


def merged(lineages: list[Lineage]) -> Lineage:
    """The lineage of a join's result: the first port's, with the oldest origin."""
    source, epoch, seq, ordinal, _, _ = lineages[0]
    return source, epoch, seq, ordinal, min(each[4] for each in lineages), min(each[5] for each in lineages)


__all__ = ["Lineage", "merged"]
