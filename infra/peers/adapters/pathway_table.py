"""pathway: a table for each stream from a Python connector that commits every millisecond, columns by a UDF, and
`subscribe`."""

import json
import sys
from typing import Any

import pathway as pw

from infra.peers.burn import work
from infra.peers.lines import Results, Setup, tuples


class _Tuples(pw.io.python.ConnectorSubject):
    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port

    def run(self) -> None:
        for item in tuples(self._port):
            self.next(item=json.dumps(item))

    @property
    def _deletions_enabled(self) -> bool:
        return False


class _Schema(pw.Schema):
    item: str


@pw.udf(deterministic=True)
def _stage(item: str) -> str:
    return json.dumps(work(json.loads(item)))


def main(setup: Setup) -> None:
    """Until the feed is over."""
    results = Results(setup.results)

    def take(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        results(json.loads(row["item"]))

    for port in setup.ports.values():
        table = pw.io.python.read(_Tuples(port), schema=_Schema, autocommit_duration_ms=1)
        for _ in range(setup.workload.stages):
            table = table.select(item=_stage(table.item))
        pw.io.subscribe(table, on_change=take)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


if __name__ == "__main__":
    main(Setup.read(sys.argv[1]))
