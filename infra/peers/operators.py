"""The operator of every contestant, as agents install it."""

from typing import Any

from infra.peers import burn
from node_agent.sdk import operator


@operator("peers.work", inputs={"item": "json"}, output="json")
def work(item: Any) -> Any:
    """Use what the tuple costs, and pass it on."""
    return burn.work(item)
