"""The kinds of connectors, each a module that is loaded when a plan first names it."""

from importlib import import_module
from typing import cast

from node_agent.connectors.connector_ports import Kind, NotConnectableError

_MODULES = {
    "mqtt": "node_agent.connectors.mqtt",
    "zenoh": "node_agent.connectors.zenoh",
    "rosbag": "node_agent.connectors.recordings.rosbag",
    "mcap": "node_agent.connectors.recordings.mcap",
}
RECORDINGS = {"rosbag", "mcap"}  # read from the first message on, each time they are opened
INSTALL = "pip install 'shimekiri[connectors]'"


def kind(name: str) -> Kind:
    """The kind of that name. Raises NotConnectableError where this release, or this node, does not have it."""
    module = _MODULES.get(name)
    if module is None:
        raise NotConnectableError(
            "unknown_connector", f"there is no connector {name!r}", f"there are {', '.join(_MODULES)}", subject=name
        )
    try:
        return cast(Kind, import_module(module))
    except ImportError as error:
        raise NotConnectableError(
            "not_loaded",
            f"connector {name} cannot be loaded here ({error})",
            f"run on this node: {INSTALL}",
            subject=name,
        ) from None
