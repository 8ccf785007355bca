"""bytewax: one dataflow with a dynamic source and sink for each stream, one worker."""

import sys
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.run import cli_main

from infra.peers.burn import work
from infra.peers.lines import Ready, Results, Setup


class _Partition(StatelessSourcePartition):
    def __init__(self, port: int) -> None:
        self._ready = Ready(port)

    def next_batch(self) -> list[dict[str, Any]]:
        try:
            return self._ready.take()
        except EOFError:
            raise StopIteration from None


class _Source(DynamicSource):
    def __init__(self, port: int) -> None:
        self._port = port

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Partition:
        return _Partition(self._port)


class _Writer(StatelessSinkPartition):
    def __init__(self, port: int) -> None:
        self._results = Results(port)

    def write_batch(self, items: list[dict[str, Any]]) -> None:
        for item in items:
            self._results(item)


class _Sink(DynamicSink):
    def __init__(self, port: int) -> None:
        self._port = port

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Writer:
        return _Writer(self._port)


def flow(setup: Setup) -> Dataflow:
    """Of all streams."""
    made = Dataflow("peers")
    for name, port in setup.ports.items():
        stream = op.input(f"{name}_in", made, _Source(port))
        for stage in range(setup.workload.stages):
            stream = op.map(f"{name}_{stage}", stream, work)
        op.output(f"{name}_out", stream, _Sink(setup.results))
    return made


if __name__ == "__main__":
    cli_main(flow(Setup.read(sys.argv[1])))
