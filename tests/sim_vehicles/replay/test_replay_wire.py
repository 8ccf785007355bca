"""The replay command over real sockets: two small stand-ins for agents that admit what comes in on the data wire."""

import json
import socket
from collections import Counter
from pathlib import Path
from threading import Thread

from typer.testing import CliRunner

from node_agent.host.clock import clock_domain
from node_agent.link.arrived import Arrived
from node_agent.wire import frames
from protos.vehicle_pb2 import Cpm, Hazard, Sensor
from sim_vehicles.cli.app import app
from tests.whole_plans import whole

CODECS = {"sensor": ("vehicle.Sensor", Sensor), "v2v": ("vehicle.Cpm", Cpm), "centre": ("vehicle.Hazard", Hazard)}


class StandIn:
    """Accepts sources; refuses every fifth V2V tuple as too old, admits the rest; keeps what it decoded."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.got: dict[str, list[Arrived]] = {name: [] for name in CODECS}
        Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.listening.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        reader, name = frames.FrameReader(), ""
        while data := connection.recv(1 << 16):
            for frame in reader.feed(data):
                if isinstance(frame, frames.Hello):
                    name = frame.peer.removeprefix("source:")
                    hello = frames.Hello("node:x", clock_domain(), 1, credit_bytes=1 << 20, codec=CODECS[name][0])
                    connection.sendall(frames.encode_hello(hello))
                elif isinstance(frame, frames.Batch):
                    connection.sendall(self._answer(name, frame))

    def _answer(self, name: str, batch: frames.Batch) -> bytes:
        seqs = range(batch.first, batch.first + len(batch.tuples))
        self.got[name].extend(batch.tuples)
        late = [seq for seq in seqs if name == "v2v" and seq % 5 == 0]
        admitted = [frames.Answer(seq, 1, seq) for seq in seqs if seq not in late]
        refusals = b"".join(frames.encode_refused("too old", seq) for seq in late)
        return refusals + frames.encode_ack(seqs[-1], 1 << 20, admitted)


def plan() -> dict[str, object]:
    sizes = {"sensor": ("a", 10), "v2v": ("a", 20), "centre": ("b", 100)}
    sources = {
        name: {"at": at, "type": CODECS[name][0], "arrival": {"kind": "burst", "burst": n, "period_ns": 500_000_000}}
        for name, (at, n) in sizes.items()
    }
    nodes = {name: {"speed": 1, "emulate_cost_ns": 0} for name in "ab"}
    return whole({"graph": {"sources": sources}, "cluster": {"nodes": nodes}})


def test_replay_over_the_wire(tmp_path: Path) -> None:
    a, b = StandIn(), StandIn()
    (tmp_path / "plan.json").write_text(json.dumps(plan()))
    nodes = {"a": {"control": "127.0.0.1:1", "data": a.address}, "b": {"control": "127.0.0.1:1", "data": b.address}}
    (tmp_path / "addresses.json").write_text(json.dumps({"nodes": nodes}))
    to = ["--to", str(tmp_path / "addresses.json"), "--start", "4s", "--duration", "1s", "--rate", "10", "--json"]
    done = CliRunner().invoke(app, ["replay", "crossing_50", *to, "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.stderr
    what = json.loads(done.stdout)
    assert what == json.loads((tmp_path / "run" / "replay.json").read_text())
    counts = {name: (one["sent"], one["admitted"], one["refused"]) for name, one in what["sources"].items()}
    assert counts == {"sensor": (20, 20, 0), "v2v": (40, 32, 8), "centre": (200, 200, 0)}
    assert what["sources"]["v2v"]["refused_why"] == {"too old": 8}
    assert (what["ended"], what["verdict"], what["outputs"]) == ("done", None, {})
    assert Counter({name: len(got) for name, got in a.got.items()}) == {"sensor": 20, "v2v": 40, "centre": 0}
    assert len(b.got["centre"]) == 200
    first = Cpm.FromString(a.got["v2v"][0].payload)
    assert first.object.measurement_delta_ms == 100
    assert "8 refused: too old" in done.stderr
    a.listening.close()
    b.listening.close()
