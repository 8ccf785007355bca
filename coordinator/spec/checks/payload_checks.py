"""How large payloads may be: whether their types and the nodes' memory allow what `max_size:` says."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.spec import graph
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Operator, Query
from coordinator.units import show_bytes

LARGE_TYPES = ("arrow", "bytes", "numpy")  # that agents have built in beside json: they are not parsed
LARGEST_PARSED = (1 << 20) - 197  # bytes of any other type: what fits one frame


def check(query: Query, types: Mapping[str, str]) -> None:
    """Notes in the file where a type has to be parsed in one go and is declared larger than that may be."""
    for one in query.producers:
        name = one.name
        if one.max_bytes > LARGEST_PARSED and types[name] not in (*LARGE_TYPES, "any"):
            text = f"payloads of '{name}' are of type {types[name]}, which has at most {show_bytes(LARGEST_PARSED)}"
            mend = f"make 'max_size:' smaller, or use one of the types {', '.join(LARGE_TYPES)}"
            query.file.wrong("payload_too_large", (*one.keys, "max_size"), text, mend)


def check_memory(query: Query, cluster: Cluster, place: Mapping[str, str]) -> None:
    """place: by operator. Raises BadInputError where a node's queues could not hold one payload of a stream."""
    most = graph.payload_bytes(query, cluster.catalog)
    for one in query.producers:
        for node in _nodes(query, one.name, place):
            memory = cluster.nodes[node].memory_bytes
            if 0 < memory < most[one.name]:
                size = show_bytes(most[one.name])
                text = f"a payload of '{one.name}' may have {size}, and the queues of node {node} {show_bytes(memory)}"
                mend = f"give {node} more 'memory:', declare a smaller 'max_size:', or use another node"
                query.file.wrong("payload_above_memory", one.keys, text, mend)
                break
    query.file.check()


def _nodes(query: Query, stream: str, place: Mapping[str, str]) -> list[str]:
    """Where a stream is admitted or made, read and delivered."""
    found = [source.at for source in query.sources if source.name == stream]
    found += [place[stream]] if stream in place else []
    found += [place[one.name] for one in query.operators if _reads(one, stream)]
    found += [output.at for output in query.outputs if output.origin == stream]
    return list(dict.fromkeys(found))


def _reads(operator: Operator, stream: str) -> bool:
    return stream in operator.inputs or stream in operator.side.values()
