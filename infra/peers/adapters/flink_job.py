"""PyFlink: a job on the local mini-cluster, parallelism 1, a socket source for each stream, Python functions in
its thread mode, and buffers of a millisecond, as its manual advises where latency counts."""

import json
import sys
from typing import Any

from pyflink.common import Configuration, Types
from pyflink.datastream import DataStream, MapFunction, RuntimeContext, StreamExecutionEnvironment

from infra.peers.burn import work
from infra.peers.lines import HOST, Results, Setup

JAVA = "_j_stream_execution_environment"  # has the source for sockets, which PyFlink itself has not


class _Sink(MapFunction):
    def __init__(self, port: int) -> None:
        self._port = port

    def open(self, runtime_context: RuntimeContext) -> None:
        self._results = Results(self._port)

    def map(self, value: dict[str, Any]) -> bool:
        self._results(value)
        return True


def main(setup: Setup) -> None:
    """Until the feed is over."""
    config = Configuration()
    config.set_string("python.execution-mode", "thread")
    config.set_string("python.executable", sys.executable)
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(1)
    env.set_buffer_timeout(1)
    for port in setup.ports.values():
        lines = DataStream(getattr(env, JAVA).socketTextStream(HOST, port))
        stream = lines.map(json.loads, output_type=Types.PICKLED_BYTE_ARRAY())
        for _ in range(setup.workload.stages):
            stream = stream.map(work, output_type=Types.PICKLED_BYTE_ARRAY())
        stream.map(_Sink(setup.results), output_type=Types.BOOLEAN()).filter(lambda _: False).print()
    env.execute("peers")


if __name__ == "__main__":
    main(Setup.read(sys.argv[1]))
