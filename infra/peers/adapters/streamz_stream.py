"""streamz: a Stream for each source in one asyncio loop, `await emit` as its manual has it for asynchronous use."""

import asyncio
import json
import sys

from streamz import Stream

from infra.peers.burn import work
from infra.peers.lines import HOST, Results, Setup


async def _feed(port: int, source: Stream) -> None:
    reader, _ = await asyncio.open_connection(HOST, port)
    while line := await reader.readline():
        await source.emit(line)


async def main(setup: Setup) -> None:
    """Until the feed is over."""
    results, feeds = Results(setup.results), []
    for port in setup.ports.values():
        source = Stream(asynchronous=True)
        stream = source.map(json.loads)
        for _ in range(setup.workload.stages):
            stream = stream.map(work)
        stream.sink(results)
        feeds.append(_feed(port, source))
    await asyncio.gather(*feeds)


if __name__ == "__main__":
    asyncio.run(main(Setup.read(sys.argv[1])))
