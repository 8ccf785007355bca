"""`node-agent feed` and `node-agent listen` against a real runtime inside the test, and as processes."""

import hashlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from node_agent.client.address_book import InputError, addresses_of, data_address
from node_agent.client.client import Admitted, Refused, Sink
from node_agent.operators.codecs import Codecs
from node_agent.runtime.in_process import in_process
from node_agent.tools import cli, feed
from node_agent.tools.feed import SummaryReport
from node_agent.tools.line_reader import CsvRows, JsonRows, LineError, LineReader
from node_agent.tools.listen import as_line
from node_agent.tools.pacing import Rate, Recorded
from node_agent.wire.plan_message import core_plan
from protos import plan_pb2
from tests.node_agent.live import ROOT, chain_plan, until
from tests.sentences import ABOVE, Wording, fault

SAID = Wording("feed", "lines")

Command = Callable[..., tuple[int, str]]
INTERRUPTIBLE = (  # also where the parent of the tests ignores Ctrl-C, as shells do for what runs in the background
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from node_agent.__main__ import main; main()"
)
MANUAL = ROOT / "docs" / "how_to" / "operators.md"
CODEC = "from node_agent.sdk import codec\nfrom protos.vehicle_pb2 import Hazard\ncodec('my.Hazard', Hazard)\n"


@contextmanager
def running(directory: Path, plan: plan_pb2.LocalPlan) -> Iterator[str]:
    """A runtime with that plan, on a thread; gives host:port."""
    done = threading.Event()
    number = int.from_bytes(hashlib.sha256(plan.SerializeToString()).digest()[:8], "big")
    with in_process(core_plan(plan, number, 1), directory) as runtime:

        def loop() -> None:
            while not done.is_set():
                runtime.step()

        thread = threading.Thread(target=loop)
        thread.start()
        assert runtime.acceptor is not None
        try:
            yield "{}:{}".format(*runtime.acceptor.address)
        finally:
            done.set()
            thread.join()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[str]:
    """host:port of a node with source `in` (of at most a minute's age) -> `pass` -> output `out`."""
    sources = [{"id": 1, "name": "in", "stream": 1, "max_age_ns": 60 * 10**9}]
    with running(tmp_path / "ring", chain_plan(sources=sources)) as address:
        yield address


@pytest.fixture
def run(node: str, capsys: pytest.CaptureFixture[str]) -> Command:
    """run(input, ...): the exit code and what feed said."""

    def command(*arguments: str) -> tuple[int, str]:
        code = cli.main(["feed", "in", *arguments, "--to", node])
        return code, capsys.readouterr().err

    return command


def values(sink: Sink, count: int) -> list[Any]:
    return [sink.get(30).value for _ in range(count)]


def test_json_lines_arrive_in_order(tmp_path: Path, node: str, run: Command) -> None:
    file = tmp_path / "in.jsonl"
    lines = [json.dumps({"id": i, "name": "ä"}) for i in range(1000)]
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n\n".join(lines).encode())  # blank lines, and none at the end
    with Sink(node, "out") as sink:
        assert run(str(file)) == (0, "node-agent feed: 1000 sent, 1000 admitted, 0 refused\n")
        assert [each["id"] for each in values(sink, 1000)] == list(range(1000))
    assert run(str(file), "-q") == (0, "")


def test_csv_cells_are_what_they_look_like(tmp_path: Path, node: str, run: Command) -> None:
    file = tmp_path / "in.CSV"
    file.write_text('id,kg,name,ok\n1,3.5,"a, ""b""\nc",true\n\n007,-1e3,,x\n')
    with Sink(node, "out") as sink:
        assert run(str(file))[0] == 0
        assert values(sink, 2) == [
            {"id": 1, "kg": 3.5, "name": 'a, "b"\nc', "ok": True},
            {"id": "007", "kg": -1000.0, "name": None, "ok": "x"},
        ]


@pytest.mark.parametrize(
    ("suffix", "text", "said"),
    [
        ("jsonl", '1\n{"a": \n3\n', ":2: not JSON: .*; write one JSON value per line"),
        ("jsonl", "1\nNaN\n3\n", ":2: not JSON: NaN is not a JSON number"),
        ("jsonl", '1\n"\\ud800"\n3\n', ":2: not a JSON value"),
        ("jsonl", "1\n\xff\n3\n", ":2: not JSON: 'utf-8' codec"),
        ("csv", "a,b\n1,2\n1\n3,4\n", ":3: 1 cells under a header of 2"),
        ("csv", 'a,b\n1,2\n"1"x,2\n3,4\n', ":3: not CSV: "),
        ("csv", "a,b\n1,2\n\xff,2\n3,4\n", ":3: not UTF-8: "),
        ("csv", "a,b\n1,2\n1,1e999\n3,4\n", ":3: not JSON: 1e999 is too large"),
        ("jsonl", '{"t":1}\n{"t":true}\n{"t":2}\n', ":2: no number in 't', which --by names"),
        ("jsonl", '{"t":1}\n{"t":0.5}\n{"t":2}\n', ":2: 't' goes back by 0.5 s; sort"),
        ("jsonl", '{"t":1}\n{"t":1e300}\n{"t":2}\n', ":2: 't' is too large for a time"),
    ],
)
def test_a_bad_line_is_named_and_ends_or_is_skipped(
    tmp_path: Path, node: str, run: Command, suffix: str, text: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_sleep_until", lambda at_ns: None)
    file = tmp_path / f"in.{suffix}"
    file.write_bytes(text.encode("latin-1"))
    by = ["--by", "t"] if '"t"' in text else []
    with Sink(node, "out") as sink:
        code, told = run(str(file), *by)
        first, last = told.splitlines()
        assert code == 2 and re.match(f"node-agent feed: {file}{said}", first)
        assert last == "node-agent feed: 1 sent, 1 admitted, 0 refused", "what comes before is sent"
        code, told = run(str(file), "--skip-bad", *by)
        assert (code, told) == (0, "node-agent feed: 2 sent, 2 admitted, 0 refused, 1 bad lines skipped\n")
        assert len(values(sink, 3)) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.jsonl"], "none.jsonl: cannot be opened (No such file or directory)"),
        (["."], ".: say what it is with --format jsonl, csv or mcap"),
        ([".", "--format", "csv"], ".: cannot be read (Is a directory)"),
        (["in.bag"], "in.bag: say what it is with --format"),
        (["excel.csv"], "excel.csv:1: one column called 'n;volt'; columns are parted by commas, not by ';'"),
        (["two.csv"], "two.csv:1: two columns are called 'a'; the first line names the columns"),
        (["empty.jsonl", "--repeat"], "empty.jsonl: has no line that can be sent, so there is nothing to repeat"),
        (["empty.jsonl", "--unit", "ms"], "--unit ms: is of the field that --by FIELD names"),
        (["empty.jsonl", "--baud", "9600"], "--baud: empty.jsonl is not a serial device"),
        (["empty.jsonl", "--baud", "9601"], "--baud 9601: one of 50, 75, "),
        (["/dev/null", "--repeat"], "--repeat: /dev/null cannot be read again; give a file"),
        (["empty.jsonl", "--operators", "none.py"], "--operators none.py: no such file"),
    ],
)
def test_bad_input_is_told(
    tmp_path: Path, run: Command, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.jsonl").touch()
    Path("excel.csv").write_text("n;volt\n1;2\n")
    Path("two.csv").write_text("a,b,a\n1,2,3\n")
    code, told = run(*arguments)
    assert code == 2 and told.startswith(f"node-agent feed: {said}"), told


@pytest.mark.parametrize(
    "option", ["--rate=0", "--rate=nan", "--rate=x", "--age-ms=-1", "--age-ms=2,1", "--age-ms=inf", "--unit=h",
               "--rate=1 --by=t", "--patience=0"],
)  # fmt: skip
def test_bad_options_are_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        cli.main(["feed", "in", "--to", "127.0.0.1:1", *option.split()])
    assert error.value.code == 2 and "argument --" in capsys.readouterr().err


def test_refusals_are_told_by_reason(tmp_path: Path, run: Command) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text("1\n2\n")
    code, told = run(str(file), "--age-ms", "61000,62000")
    assert code == 0
    assert re.fullmatch(
        r"node-agent feed: 2 sent, 0 admitted, 2 refused \(2 x at least 61\d+\.\d ms old, at most 60000 ms .*\)\n", told
    )
    report = SummaryReport()
    report.sent = 14
    report.add([Admitted(1, 1), None, *(Refused("it is " + "x" * number) for number in range(12))])
    assert "14 sent, 1 admitted, 12 refused (4 x other reasons; 1 x it is ; " in report.last_line()
    assert report.last_line().endswith(", 1 without an answer")


def test_nobody_there_and_no_such_source(tmp_path: Path, node: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text("1\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        nowhere = f"127.0.0.1:{free.getsockname()[1]}"
    assert cli.main(["feed", "in", str(file), "--to", nowhere, "--patience", "0.05"]) == 1
    assert f"node-agent feed: no agent answers at {nowhere} " in capsys.readouterr().err
    assert cli.main(["listen", "out", "--from", nowhere, "--patience", "0.05"]) == 1
    assert f"node-agent listen: no agent answers at {nowhere} " in capsys.readouterr().err
    assert cli.main(["feed", "inn", str(file), "--to", node]) == 1
    assert "has a source 'inn'" in capsys.readouterr().err
    assert cli.main(["listen", "outt", "--from", node]) == 1
    assert "outt" in capsys.readouterr().err


class Clock:
    """Time that passes by sleeping only, in place of feed's own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = self.began_ns = 10**15
        self.bursts: list[tuple[int, list[tuple[Any, tuple[float, float]]]]] = []
        self.sending_ns = 0  # how long it takes
        monkeypatch.setattr(feed, "now_ns", lambda: self.now_ns)
        monkeypatch.setattr(feed, "_sleep_until", self.sleep)
        monkeypatch.setattr("node_agent.client.client.Source.send_aged", lambda source, aged: self.send(aged))

    def sleep(self, at_ns: int) -> None:
        self.now_ns = max(self.now_ns, at_ns)

    def send(self, aged: list[tuple[Any, tuple[float, float]]]) -> list[Admitted]:
        self.bursts.append((self.now_ns - self.began_ns, aged))
        self.now_ns += self.sending_ns
        if len(self.bursts) == 6:
            raise KeyboardInterrupt
        return [Admitted(1, 1)] * len(aged)


def test_recorded_gaps_are_kept_and_repeated(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    file = tmp_path / "in.csv"
    file.write_text("t\n100\n100\n103.5\n110\n")
    code, told = run(str(file), "--by", "t", "--unit", "ms", "--repeat", "--age-ms", "5,7")
    assert code == 0 and told.startswith("node-agent feed: 8 sent, 7 admitted, 0 refused, 1 without an answer")
    assert [at_ns for at_ns, _ in clock.bursts] == [0, 3_500_000, 10_000_000, 16_500_000, 20_000_000, 26_500_000]
    assert clock.bursts[0][1] == [({"t": 100}, (5.0, 7.0))] * 2


def test_what_is_sent_late_is_that_much_older(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    clock.sending_ns = 25_000_000
    file = tmp_path / "in.jsonl"
    file.write_text("0\n1\n2\n3\n4\n5\n")
    assert run(str(file), "--rate", "100")[0] == 0
    assert clock.bursts == [
        (0, [(0, (0.0, 0.0))]),
        (25_000_000, [(1, (15.0, 15.0)), (2, (5.0, 5.0))]),
        (50_000_000, [(3, (20.0, 20.0)), (4, (10.0, 10.0)), (5, (0.0, 0.0))]),
    ]


def test_gaps() -> None:
    rate = Rate(3)
    assert sum(rate.gap_ns(None) for _ in range(300)) == 100 * 10**9
    recorded = Recorded("t", 1)
    assert [recorded.gap_ns({"t": t}) for t in (1 << 62, (1 << 62) + 1, str((1 << 62) + 3))] == [0, 1, 2]


def test_lines_that_come_slowly_do_not_wait_for_each_other(node: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "node_agent", "feed", "in", "--to", node]
    with (
        Sink(node, "out") as sink,
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process,
    ):
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(b"1\n\n2\n3")
        process.stdin.flush()
        assert values(sink, 2) == [1, 2], "the third is not whole yet"
        process.stdin.write(b"4\n5")
        process.stdin.flush()
        assert values(sink, 1) == [34]
        process.stdin.close()
        assert values(sink, 1) == [5]
        assert process.wait(30) == 0
        assert process.stderr.read() == b"node-agent feed: 4 sent, 4 admitted, 0 refused\n"


def test_a_serial_device_is_read_raw_and_gets_its_settings_back(node: str) -> None:
    ours, theirs = os.openpty()
    before = termios.tcgetattr(theirs)
    path = os.ttyname(theirs)
    codes: list[int] = []
    arguments = ["feed", "in", path, "--baud", "19200", "--skip-bad", "--to", node]
    thread = threading.Thread(target=lambda: codes.append(cli.main(arguments)))
    with Sink(node, "out") as sink:
        thread.start()
        until(lambda: termios.tcgetattr(theirs)[4] == termios.B19200 and not termios.tcgetattr(theirs)[3])
        os.write(ours, b'lf a line"}\r\n{"x": 1}\r\n')
        assert values(sink, 1) == [{"x": 1}]
        os.write(ours, b"2\n")
        assert values(sink, 1) == [2]
        os.close(ours)  # as if it were unplugged
        thread.join(30)
    assert codes == [0]
    os.close(theirs)
    ours, theirs = os.openpty()
    with closing(LineReader(os.ttyname(theirs), 9600)):
        assert termios.tcgetattr(theirs)[4] == termios.B9600
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)


def test_a_line_without_an_end_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node_agent.tools.line_reader.MOST_LINE_BYTES", 100_000)
    file = tmp_path / "in"
    file.write_bytes(b"1" * 1_000_000 + b"\n2\n")
    for read in (JsonRows, CsvRows):
        with closing(LineReader(str(file))) as lines:
            rows = read(lines)
            with pytest.raises(InputError) as error:
                next(rows)
            assert fault(error.value.problem) == "in:1 too_large"
            SAID.check(f"{read.__name__}: in:1 too_large", [ABOVE.sub("", str(error.value))])
            assert len(lines._rest) <= 100_001
            if read is JsonRows:
                assert isinstance(error.value, LineError) and next(rows) == 2


def test_a_nodes_name_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "addresses.json"
    file.write_text('{"nodes": {"a": {"data": "127.0.0.1:7701"}, "b": {"data": "x"}, "c": 1}}')
    assert data_address("a", file) == "127.0.0.1:7701" and data_address("[::1]:7701", None) == "[::1]:7701"
    for name, said in (
        ("d", 'addresses.json unknown_node d'), ("b", 'addresses.json not_an_address nodes.b.data'),
        ("c", 'addresses.json not_an_address nodes.c.data'), ("a:x", 'not_an_address --node'),
    ):  # fmt: skip
        with SAID.refuses(said):
            data_address(name, file)
    monkeypatch.chdir(tmp_path)
    assert addresses_of("a", None) == Path("addresses.json") and addresses_of("h:1", None) is None
    assert addresses_of("a", tmp_path) == tmp_path
    file.rename(tmp_path / "other.json")
    assert addresses_of("a", None) is None
    file.touch()
    with SAID.refuses("no_addresses a"):
        data_address("a", None)
    for text, said in (
        ("{", "addresses.json not_json"),
        ("[]", "addresses.json no_nodes nodes"),
        ('{"nodes": {}}', "addresses.json no_nodes nodes"),
    ):
        file.write_text(text)
        with SAID.refuses(said):
            data_address("a", file)
    with SAID.refuses("unreadable --addresses"):
        data_address("a", tmp_path / "none")


def listen(*arguments: str) -> "subprocess.Popen[str]":
    """`node-agent listen` once it is connected."""
    command = [sys.executable, "-c", INTERRUPTIBLE, "listen", "out", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.readline()
    assert "results from now on" in said, said + process.stderr.read()
    return process


def test_from_a_file_to_a_pipe_by_the_nodes_names(tmp_path: Path, node: str, run: Command) -> None:
    addresses = tmp_path / "addresses.json"
    addresses.write_text(json.dumps({"nodes": {"a": {"data": node}}}))
    file = tmp_path / "in.jsonl"
    file.write_text('{"x": "ü"}\n[2]\n')
    with (
        listen("--from", "a", "--addresses", str(addresses), "--count", "2") as counting,
        listen("--from", node) as endless,
        listen("--from", node) as deaf,
    ):
        assert counting.stdout is not None and endless.stdout is not None and deaf.stdout is not None
        deaf.stdout.close()
        assert run(str(file), "--age-ms", "10,20")[0] == 0
        lines = [json.loads(endless.stdout.readline()) for _ in range(2)]
        endless.send_signal(signal.SIGINT)
        assert endless.wait(30) == 0 and endless.stderr is not None and endless.stderr.read() == ""
        assert counting.wait(30) == 0
        assert deaf.wait(30) == 0 and deaf.stderr is not None and deaf.stderr.read() == ""
        counted = [json.loads(line) for line in counting.stdout]
    assert [line["value"] for line in counted] == [{"x": "ü"}, [2]] == [line["value"] for line in lines]
    assert list(lines[0]) == ["value", "at_ns", "latency_ns", "lineage"]
    low, high = lines[0]["latency_ns"]
    assert high - low == 10_000_000 and low >= 10_000_000
    assert lines[1]["lineage"] == [1, lines[0]["lineage"][1], 2, 0]


def test_listening_ends_when_nothing_comes(node: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["listen", "out", "--from", node, "--timeout", "0.01"]) == 0
    assert cli.main(["listen", "out", "--from", node, "--timeout", "0.01", "--count", "2"]) == 4
    assert capsys.readouterr().err.endswith("node-agent listen: 0 of 2 results came; none for 0.01 s\n")


def test_protobuf_is_json_on_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "vehicle.Hazard"
    codec = Codecs().get(name)
    fields = codec.fields
    assert fields is not None
    number = next(field for field, kind in fields.items() if kind == "number")
    streams = [{"id": i, "name": each, "codec": name, "deadline_ns": 10**9} for i, each in ((1, "in"), (2, "O1"))]
    file = tmp_path / "in.csv"
    file.write_text(f"{number}\n3\nx\n")
    with running(tmp_path / "ring", chain_plan(streams=streams)) as address, Sink(address, "out") as sink:
        assert cli.main(["feed", "in", str(file), "--to", address]) == 2
        assert f"{file}:3: not a {name} in JSON" in capsys.readouterr().err
        shown = json.loads(as_line(sink.get(30), sink.codec))
    assert shown["value"] == {number: 3}


def test_a_codec_of_ones_own_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from node_agent.client.address_book import client_codecs

    file = tmp_path / "ops.py"
    file.write_text(CODEC)
    assert client_codecs([file]).get("my.Hazard").name == "my.Hazard"
    file.write_text("1 / 0\n")
    assert cli.main(["feed", "in", "--to", "127.0.0.1:1", "--operators", str(file)]) == 2
    assert "ops.py" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "said"), [("fed", "did you mean 'feed'?"), ("nothing", "there are run, operators, charges, ")]
)
def test_an_unknown_command_is_told_in_a_line(word: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([word, "--to", "a"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"node-agent: no such command: {word!r}; {said}") and err.count("\n") == 1


@pytest.mark.parametrize("command", ["feed", "listen"])
def test_examples_of_the_help_and_the_manual_are_right(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    said = capsys.readouterr().out.partition("examples:")[2] + MANUAL.read_text()
    examples = re.findall(rf"node-agent ({command} .*? --(?:to|from) .*)", said)
    assert len(examples) >= 4
    for example in examples:
        words = shlex.split(re.split(r"  +|[>|]", example)[0])
        cli.command_line().parse_args(words)
