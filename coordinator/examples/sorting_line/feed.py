"""Feeds the sorting line with made-up trays: python feed.py addresses.json [SECONDS]."""

import json
import random
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from node_agent.sdk import Source

LANES = ("NO-S", "NO-M", "SU-S", "SU-M", "SU-L")


def tray(number: int, chance: random.Random) -> dict[str, Any]:
    """One photographed tray; a quarter are empty, a tenth have a label that cannot be read."""
    return {
        "tray": number,
        "grams": 0 if chance.random() < 0.25 else chance.randint(60, 4000),
        "edges_mm": [chance.randint(80, 600) for _ in range(3)],
        "code": "??" if chance.random() < 0.1 else chance.choice(("NO", "SU")) + f"{chance.randrange(10**6):06d}",
    }


def main(addresses: str, seconds: float = 5.0) -> None:
    """Four trays every 200 ms, a lane opened or closed every second."""
    nodes = json.loads(Path(addresses).read_text())["nodes"]
    chance = random.Random(1)
    began = time.monotonic()
    with ExitStack() as stack:
        camera = stack.enter_context(Source(nodes["belt"]["data"], "camera"))
        keypad = stack.enter_context(Source(nodes["office"]["data"], "keypad"))
        for burst in range(int(seconds * 5)):
            time.sleep(max(0.0, began + burst * 0.2 - time.monotonic()))
            if burst % 5 == 0:
                keypad.send({"lane": chance.choice(LANES), "open": chance.random() < 0.5})
            camera.send_many([tray(4 * burst + i, chance) for i in range(4)])


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:3]))
