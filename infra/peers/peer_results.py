"""What was measured, and its file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any

from infra.peers.workload import MS, Workload


@dataclass(frozen=True)
class StreamResult:
    """Of one class. Latencies in ms, of the results that came; None: none came."""

    offered: int
    missed: int
    p50_ms: float | None = None
    p99_ms: float | None = None
    worst_ms: float | None = None

    @property
    def missed_share(self) -> float:
        """Of what was offered."""
        return self.missed / self.offered


@dataclass(frozen=True)
class Measured:
    """One run. cpu_s, memory_mb: of all processes but the feeder's; lag_ms: the most that the feeder was late."""

    streams: Mapping[str, StreamResult]
    cpu_s: float
    memory_mb: float
    lag_ms: float

    @property
    def offered(self) -> int:
        """Tuples of all streams."""
        return sum(each.offered for each in self.streams.values())


@dataclass(frozen=True)
class Row:
    """A contestant. runs: by the workload's name; reason: why one of them is missing, or all."""

    name: str
    version: str
    runs: Mapping[str, Measured]
    reason: str = ""


def judged(latencies_ns: Sequence[int | None], deadline_ns: int) -> StreamResult:
    """Late or never comes: missed. None: never came."""
    came = sorted(each for each in latencies_ns if each is not None)
    missed = len(latencies_ns) - sum(each <= deadline_ns for each in came)
    if not came:
        return StreamResult(len(latencies_ns), missed)
    p50, p99, worst = (came[max(0, ceil(len(came) * share) - 1)] / MS for share in (0.5, 0.99, 1))
    return StreamResult(len(latencies_ns), missed, p50, p99, worst)


def judge(workload: Workload, latencies: Mapping[str, Sequence[int | None]]) -> dict[str, StreamResult]:
    """Every stream by its deadline."""
    return {each.name: judged(latencies[each.name], each.deadline_ns) for each in workload.streams}


def write(rows: Sequence[Row], conditions: Mapping[str, Any], path: Path) -> None:
    """As `read` takes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"conditions": dict(conditions), "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(content, indent=1) + "\n")


def read(path: Path) -> tuple[list[Row], dict[str, Any]]:
    """Rows and the conditions of a file."""
    content = json.loads(path.read_text())
    return [_row(each) for each in content["rows"]], content["conditions"]


def _row(content: Mapping[str, Any]) -> Row:
    return Row(**{**content, "runs": {name: _measured(each) for name, each in content["runs"].items()}})


def _measured(content: Mapping[str, Any]) -> Measured:
    return Measured(**{**content, "streams": {name: StreamResult(**each) for name, each in content["streams"].items()}})
