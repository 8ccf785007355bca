"""`node-agent feed FILE.mcap`: real files, into a real runtime."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcap.writer import CompressionType, Writer

from node_agent.client.client import Sink
from node_agent.connectors.recordings import mcap_reader
from node_agent.connectors.recordings.mcap_reader import McapReader, Stamps
from node_agent.operators.codecs import Codecs
from node_agent.tools import cli, feed
from protos.vehicle_pb2 import DESCRIPTOR, Hazard, Sensor
from tests.node_agent.live import ROOT, chain_plan
from tests.node_agent.tools.test_feed_listen import running
from tests.sentences import Wording

SAID = Wording("feed", "recordings")

MS = 1_000_000
Write = Callable[..., str]
TYPE = "vehicle.Hazard"


def mcap(
    path: Path,
    messages: list[tuple[str, bytes, int, int]],
    encodings: dict[str, str] | None = None,
    schemas: dict[str, str] | None = None,
    **options: Any,
) -> str:
    """A file with these messages (topic, data, log ns, publish ns); a topic's encoding is json unless given."""
    with path.open("wb") as file:
        writer = Writer(file, **options)
        writer.start()
        channels: dict[str, int] = {}
        for topic, data, log_ns, publish_ns in messages:
            if topic not in channels:
                name = (schemas or {}).get(topic, "")
                schema = writer.register_schema(name, "protobuf", DESCRIPTOR.serialized_pb) if name else 0
                channels[topic] = writer.register_channel(topic, (encodings or {}).get(topic, "json"), schema)
            writer.add_message(channels[topic], log_ns, data, publish_ns)
        writer.finish()
    return str(path)


def numbers(topic: str, times_ms: list[float]) -> list[tuple[str, bytes, int, int]]:
    """Messages 0, 1, ..., logged then and published twice as late."""
    return [(topic, str(i).encode(), round(t * MS), round(2 * t * MS)) for i, t in enumerate(times_ms)]


@pytest.mark.parametrize(
    "options",
    [
        {"compression": CompressionType.NONE}, {"compression": CompressionType.LZ4}, {"chunk_size": 50},
        {"use_chunking": False}, {"use_summary_offsets": False, "repeat_channels": False},
    ],
)  # fmt: skip
def test_one_topics_messages_in_the_files_order(tmp_path: Path, options: dict[str, Any]) -> None:
    both = [
        each for pair in zip(numbers("/a", [*range(40)]), numbers("/b", [*range(40)]), strict=True) for each in pair
    ]
    found = McapReader(mcap(tmp_path / "x.mcap", both, **options), "/b", "log")
    codec = Codecs().get("json")
    for _ in range(2):
        assert [(found.typed(codec, data), found.number, found.at_ns) for data in found] == [
            (i, i + 1, i * MS) for i in range(40)
        ]
        found.rewind()
    found.close()


def test_gaps_by_log_and_by_publish_time(tmp_path: Path) -> None:
    path = mcap(tmp_path / "x.mcap", numbers("/a", [5, 10, 8, 12]))
    for by, gaps_ms in (("log", [0, 5, 0, 2, 2, 5]), ("publish", [0, 10, 0, 4, 4, 10])):
        given = McapReader(path, None, by)
        stamps = Stamps(given)
        found = [stamps.gap_ns(each) for each in given]
        given.rewind()
        stamps.again()
        found += [stamps.gap_ns(next(given)) for _ in range(2)]
        assert found == [gap * MS for gap in gaps_ms], "what goes back is due at once; a repetition keeps the last gap"
        given.close()


def test_json_messages_arrive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = mcap(tmp_path / "x.mcap", numbers("/a", [0, 1, 2]) + numbers("/b", [0]))
    with running(tmp_path / "ring", chain_plan()) as address, Sink(address, "out") as sink:
        assert cli.main(["feed", "in", path, "--to", address]) == 2
        said = capsys.readouterr().err
        assert said == f"node-agent feed: {path}: has several topics, choose one with --topic: /a, /b\n"
        assert cli.main(["feed", "in", path, "--to", address, "--topic", "/a", "--json"]) == 0
        assert [sink.get(30).value for _ in range(3)] == [0, 1, 2]
        last = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert last == {"sent": 3, "admitted": 3, "refused": {}, "bad": 0}


def test_protobuf_messages_go_through_the_streams_codec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    streams = [{"id": i, "name": each, "codec": TYPE, "deadline_ns": 10**9} for i, each in ((1, "in"), (2, "O1"))]
    hazard = Hazard(**{Hazard.DESCRIPTOR.fields[0].name: 3})
    messages = [("/h", hazard.SerializeToString(), 0, 0), ("/h", b"\xff\xff", 1, 1)]
    proto = {"/h": "protobuf"}
    good = mcap(tmp_path / "good.mcap", messages, proto, {"/h": Hazard.DESCRIPTOR.full_name})
    other = mcap(tmp_path / "other.mcap", messages, proto, {"/h": Sensor.DESCRIPTOR.full_name})
    with running(tmp_path / "ring", chain_plan(streams=streams)) as address, Sink(address, "out") as sink:
        assert cli.main(["feed", "in", good, "--to", address]) == 2
        assert f"{good}:2: not a {TYPE}: " in capsys.readouterr().err
        assert sink.get(30).value == hazard
        assert cli.main(["feed", "in", good, "--to", address, "--skip-bad"]) == 0
        assert capsys.readouterr().err.endswith("1 sent, 1 admitted, 0 refused, 1 bad lines skipped\n")
        assert cli.main(["feed", "in", other, "--to", address]) == 2
        names = f"topic /h carries {Sensor.DESCRIPTOR.full_name}, and the source takes {Hazard.DESCRIPTOR.full_name}"
        assert f"{other}:1: {names}" in capsys.readouterr().err
    with running(tmp_path / "ring2", chain_plan()) as address:
        assert cli.main(["feed", "in", good, "--to", address]) == 2
        assert "carries protobuf messages, and the source takes json: declare its type" in capsys.readouterr().err


def _write(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def test_what_is_no_recording_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = mcap(tmp_path / "x.mcap", numbers("/a", [*range(100)]), chunk_size=200)
    whole = Path(path).read_bytes()
    ros = mcap(tmp_path / "ros.mcap", numbers("/a", [0]), {"/a": "cdr"})
    empty = mcap(tmp_path / "empty.mcap", [])
    for file, topic, said in (
        (str(tmp_path / "gone.mcap"), None, "gone.mcap unreadable"),
        (path, "/c", "x.mcap unknown_topic /c"),
        (ros, None, "ros.mcap unknown_encoding /a"),
        (empty, None, "empty.mcap empty_file"),
        (_write(tmp_path / "bad.mcap", b"[1, 2]\n" * 9), None, "bad.mcap not_mcap"),
        (_write(tmp_path / "none.mcap", b""), None, "none.mcap cut_off"),
    ):
        with SAID.refuses(said):
            McapReader(file, topic, "log")
    for damaged, said in (
        (whole[: len(whole) // 2], "bad.mcap cut_off"),
        (whole[:300] + b"\x00" * 40 + whole[340:], "bad.mcap:6 damaged"),
    ):
        with SAID.refuses(said, worded=False):
            list(McapReader(_write(tmp_path / "bad.mcap", damaged), None, "log"))
    monkeypatch.setattr(mcap_reader, "MOST_CHUNK_BYTES", 100)
    for compression in (CompressionType.LZ4, CompressionType.ZSTD):
        large = mcap(tmp_path / "large.mcap", numbers("/a", [*range(100)]), compression=compression)
        with SAID.refuses("large.mcap damaged"):
            list(McapReader(large, None, "log"))


def test_options_of_other_inputs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = mcap(tmp_path / "x.mcap", numbers("/a", [0]))
    (tmp_path / "x.jsonl").write_text("1\n")
    lines = str(tmp_path / "x.jsonl")
    for arguments, said in (
        ([path, "--by", "t"], "--by t: of an MCAP file it is log or publish"),
        ([path, "--unit", "ms"], "--unit ms: "),
        ([path, "--baud", "9600"], "--baud: "),
        ([lines, "--topic", "/a"], "--topic /a: is of an MCAP file"),
        ([lines, "--steady"], "--steady: keeps the gaps that --rate or --by gives"),
    ):
        assert cli.main(["feed", "in", *arguments, "--to", "127.0.0.1:1"]) == 2
        assert capsys.readouterr().err.startswith(f"node-agent feed: {said}")


def test_without_the_package_one_line_says_what_to_install(tmp_path: Path) -> None:
    path = mcap(tmp_path / "x.mcap", numbers("/a", [0]))
    code = (
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('mcap', 'lz4', 'zstandard'): raise ModuleNotFoundError(name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
        "import importlib.util\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'mcap' else found(name, *more)\n"
        "from node_agent.tools.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "feed", "in", path, "--to", "127.0.0.1:1"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        "node-agent feed: reading MCAP needs the package mcap: pip install 'shimekiri[feed]'"
        " (from a file: 'shimekiri-VERSION-py3-none-any.whl[feed]')\n"
    )


def test_a_steady_feed_makes_up_for_no_delay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"ns": 10**15}
    sent: list[tuple[int, list[Any]]] = []

    def send(source: object, aged: list[Any]) -> list[Any]:
        sent.append(((now["ns"] - 10**15) // MS, aged))
        now["ns"] += (25 if len(sent) == 2 else 1) * MS  # the second one takes long
        return []

    monkeypatch.setattr(feed, "now_ns", lambda: now["ns"])
    monkeypatch.setattr(feed, "_sleep_until", lambda at_ns: now.update(ns=max(now["ns"], at_ns + 2 * MS)))
    monkeypatch.setattr("node_agent.client.client.Source.send_aged", send)
    file = tmp_path / "in.jsonl"
    file.write_text("0\n1\n2\n3\n")
    with running(tmp_path / "ring", chain_plan()) as address:
        assert cli.main(["feed", "in", str(file), "--to", address, "--rate", "100", "--steady"]) == 0
    assert sent == [(at_ms, [(i, (0.0, 0.0))]) for i, at_ms in enumerate((0, 13, 50, 63))]
