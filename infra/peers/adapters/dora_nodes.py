"""dora: a dataflow of nodes, a process each, run by `dora run`: a source node, a node for each operator, a sink node.

`python -m infra.peers.adapters.dora_nodes FOLDER` writes and runs the dataflow. With NODE it is one of its nodes.
"""

import json
import os
import sys
from pathlib import Path

from dora import Node

from infra.peers.burn import work
from infra.peers.lines import Results, Setup, tuples


def dataflow(setup: Setup) -> str:
    """The descriptor; JSON is YAML."""
    nodes: list[dict[str, object]] = []
    ends = {}
    for name in setup.ports:
        before = _node(setup, nodes, f"source-{name}", {}, name)
        for stage in range(setup.workload.stages):
            before = _node(setup, nodes, f"operator-{name}-{stage}", {"item": before}, "item")
        ends[name] = before
    _node(setup, nodes, "sink", ends, None)
    return json.dumps({"nodes": nodes})


def _node(setup: Setup, nodes: list[dict[str, object]], name: str, inputs: dict[str, str], output: str | None) -> str:
    """Adds it; its output as inputs name it."""
    command = {"path": sys.executable, "args": f"-m infra.peers.adapters.dora_nodes {setup.folder} {name}"}
    outputs = [] if output is None else [output]
    nodes.append({"id": name, **command, "inputs": inputs, "outputs": outputs})
    return f"{name}/{output}"


def source(setup: Setup, name: str) -> None:
    """Sends what the feeder has for the stream."""
    node = Node()
    for item in tuples(setup.ports[name]):
        node.send_output(name, json.dumps(item).encode())


def operator() -> None:
    """Runs on every input."""
    node = Node()
    for event in node:
        if event["type"] == "INPUT":
            item = work(json.loads(event["value"].to_numpy().tobytes()))
            node.send_output("item", json.dumps(item).encode())


def sink(setup: Setup) -> None:
    """Hands all results to the feeder."""
    results = Results(setup.results)
    for event in Node():
        if event["type"] == "INPUT":
            results(json.loads(event["value"].to_numpy().tobytes()))


def main(setup: Setup, *node: str) -> None:
    """The dataflow, or one node of it."""
    kind, _, name = (node[0] if node else "").partition("-")
    if kind == "source":
        source(setup, name)
    elif kind == "operator":
        operator()
    elif kind == "sink":
        sink(setup)
    else:
        path = setup.folder / "dataflow.yml"
        path.write_text(dataflow(setup))
        dora = str(Path(sys.executable).parent / "dora")
        os.chdir(setup.folder)
        os.execv(dora, [dora, "run", str(path)])


if __name__ == "__main__":
    main(Setup.read(sys.argv[1]), *sys.argv[2:])
