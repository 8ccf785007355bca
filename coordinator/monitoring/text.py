"""A frame as text: for pipes, and for terminals that cannot be drawn on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coordinator.monitoring.metrics import Frame
from coordinator.monitoring.tables import NODES, OUTPUTS, Column, Row
from coordinator.units import counted

GAP = "  "


def lines(frame: Frame) -> Iterator[str]:
    """Nodes, outputs, and who does not answer."""
    yield from table(NODES, frame.nodes)
    if frame.outputs:
        yield ""
        yield from table(OUTPUTS, frame.outputs)
    said = list(dict.fromkeys(node.why for node in frame.nodes if node.why))
    if said:
        yield ""
        yield from said


def table(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> Iterator[str]:
    """As wide as it needs to be."""
    cells = [[column.title for column in columns], *([column.cell(row) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (
            cell.rjust(width) if column.right else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        )
        yield GAP.join(padded).rstrip()


def headline(frame: Frame, seconds: float | None) -> str:
    """`3 nodes, 1 does not answer; 2 outputs; the last 2 s`. seconds: None for the first look."""
    silent = sum(not node.reachable for node in frame.nodes)
    missing = f", {silent} {'does' if silent == 1 else 'do'} not answer" if silent else ""
    nodes, outputs = counted(len(frame.nodes), "node"), counted(len(frame.outputs), "output")
    span = "since each runtime began" if seconds is None else f"the last {seconds:g} s"
    return f"{nodes}{missing}; {outputs}; {span}"
