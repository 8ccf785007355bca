"""The operators and codecs of this machine, with the vehicles' messages among them."""

from collections.abc import Sequence
from pathlib import Path

from node_agent.operators.registry import Registry
from node_agent.virtual.run import operators_here
from protos import vehicle_pb2

MESSAGES = (
    vehicle_pb2.Sensor, vehicle_pb2.Cpm, vehicle_pb2.Hazard, vehicle_pb2.Ego, vehicle_pb2.Encounter,
    vehicle_pb2.Warning, vehicle_pb2.Advice,
)  # fmt: skip


def operators_of_vehicles(files: Sequence[Path] = (), checks: bool = False) -> Registry:
    """As `operators_here`; the vehicles' messages are there in a checkout that is not installed too, which has no entry
    points. Raises BadInputError for a bad file."""
    registry = operators_here(files, checks)
    known = registry.codecs.names()
    for message in MESSAGES:
        if message.DESCRIPTOR.full_name not in known:
            registry.codecs.add(message.DESCRIPTOR.full_name, message)
    return registry
