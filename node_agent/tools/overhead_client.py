"""The other end of the sockets while charges are measured: a process of its own, so that it takes no time of the loop.

python -m node_agent.tools.overhead_client HOST:PORT TYPE OUTPUTS BURST [IDENTITY] < one JSON value, then a line when
to begin

It listens to the outputs out1, out2, ... and puts the value into source `fed`, BURST tuples in one call, until it is
ended.
"""

import contextlib
import itertools
import json
import sys
import threading
import time

from node_agent.client import client
from node_agent.operators.codecs import Codecs

PAUSES_S = (0.0003, 0.0007, 0.0011, 0.0002)  # not in step with the loop


def main(address: str, codec: str, outputs: int, burst: int, tls: str | None = None) -> None:
    """Connect all, say so on stdout, wait for a line, feed."""
    value = Codecs().get(codec).from_json(json.loads(sys.stdin.readline()))
    for number in range(1, outputs + 1):
        threading.Thread(target=_listen, args=(address, f"out{number}", tls), daemon=True).start()
    with client.Source(address, "fed", timeout=10, tls=tls) as source:
        if not sys.stdin.readline():
            return
        for pause_s in itertools.cycle(PAUSES_S):
            source.send_many([value] * burst)
            time.sleep(pause_s)


def _listen(address: str, output: str, tls: str | None) -> None:
    with contextlib.suppress(client.AgentError), client.Sink(address, output, connect_timeout=10, tls=tls) as sink:
        for _ in sink:  # what is wrong, the source says as well
            pass


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:6])
    except client.AgentError as error:
        sys.exit(str(error))
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(1)
