"""`coordinator run --local`: from files to an account in one command, with real agents; and what it does when something
goes wrong in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from coordinator.__main__ import main
from coordinator.errors import CoordinatorError
from coordinator.local_run import files, installed, run_summary
from coordinator.local_run.agent_logs import exception
from coordinator.local_run.files import Wishes, declared_rate, feeds
from coordinator.model.choices import Choices
from coordinator.plan import plan_file
from coordinator.solve import planner
from coordinator.spec import query_reader
from protos import plan_document
from protos.plan_document import Plan
from tests.whole_plans import whole

QUERY = """
shimekiri: 1
query: beats
sources:
  beat: {at: a, type: json, arrival: {rate: 100}, max_age: 2 s}
  side: {at: a, type: json, arrival: {burst: 3, period: 60 ms}, max_age: 2 s}
operators:
  both: {run: union, in: [beat, side], cost: 50 us}
  mine: {run: my.same, in: both, cost: 50 us}
outputs:
  out: {from: mine, at: a, deadline: 5 s}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "192.0.2.7:7700", policy: edf, cores: 2}
operators: operators.json
security: mutual-tls
"""
OPERATORS = """
from node_agent.sdk import operator

@operator("my.same", inputs={"value": "json"}, output="json")
def same(value):
    return value
"""
EXAMPLE = Path(__file__).parents[3] / "coordinator" / "examples" / "sorting_line"
NOTHING = Wishes({}, {}, {}, {})
EVERY_SECOND = {"kind": "burst", "burst": 1, "period_ns": 10**9}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a query, a cluster of another machine, operators, and tuples for both sources."""
    (tmp_path / "query.yaml").write_text(QUERY)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "operators.py").write_text(OPERATORS)
    (tmp_path / "feed.jsonl").write_text("1\n2\n3\n4\n")
    (tmp_path / "side.csv").write_text("x\n5\n6\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["coordinator", "run", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def _left() -> list[int]:
    """Agents and feeds that are children of this process."""
    return [each.pid for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE]


def test_from_files_to_a_verdict_and_agents_that_stay(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _left()
    assert _run(monkeypatch, "--local", "--json", "--keep", "-v") == 0
    said, told = capsys.readouterr()
    account: dict[str, Any] = json.loads(said)
    assert "brought up to date" not in told and not (here / "operators.json").exists()
    assert f"source beat: {Path('feed.jsonl')} at 100 a second, as it is declared" in told
    assert "source side: side.csv at 50 a second, as it is declared" in told
    assert account["outputs"]["out"]["delivered"] == 6 and account["conservation"]["balanced"] and account["complete"]
    assert account["missing"] == [] and account["outputs"]["out"]["guaranteed"]
    assert account["lost"] == [] and account["unfed"] == [] and not account["shed"]["units"]
    assert [(each["source"], each["sent"], each["admitted"]) for each in account["feeds"]] == [
        ("beat", 4, 4), ("side", 2, 2),
    ]  # fmt: skip
    assert set(account["placement"].values()) <= {"a", "a.1"}
    run = Path(account["run"])
    assert json.loads((run / "report.json").read_text())["plan_hash"] == account["plan_hash"]
    assert {path.name for path in (run / "logs").iterdir()} == {"a.log", "feed-beat.log", "feed-side.log"}
    assert Path(account["page"]).is_file()
    results = [json.loads(line)["value"] for line in (run / "results" / "out.jsonl").read_text().splitlines()]
    assert results and all(each in (1, 2, 3, 4, {"x": 5}, {"x": 6}) for each in results)

    assert _run(monkeypatch, "--local", "--keep") == 1
    assert "addresses.json: the agents of a are running already" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["coordinator", "status", "--json"])
    with pytest.raises(SystemExit):
        main()
    assert '"COMMITTED"' in (status := capsys.readouterr().out) or "committed" in status
    monkeypatch.setattr(sys, "argv", ["coordinator", "down"])
    with pytest.raises(SystemExit):
        main()
    assert "node a: stopped" in capsys.readouterr().out
    assert _left() == before


def test_the_first_query_is_told_of_in_fifteen_short_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The untouched template: nothing is wrong with it, also where the machine is slow."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["coordinator", "init", "."])
    with pytest.raises(SystemExit):
        main()
    capsys.readouterr()
    assert _run(monkeypatch, "--local") == 0
    said, told = capsys.readouterr()
    lines = (told + said).splitlines()
    assert len(lines) <= 15 and max(map(len, lines)) <= 80, told + said
    assert said.splitlines()[1].split()[:3] == ["output", "deadline", "bound"], (
        "nothing is wrong, so the table is first"
    )
    assert "balanced: 48 tuples" in said and "page: runs/" in said


class Running:
    """The command as a process of its own that feeds until it is told to end."""

    def __init__(self, here: Path, *arguments: str) -> None:
        code = (  # also where the parent of the tests ignores Ctrl-C, or that its terminal is closed
            "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
            "from coordinator.__main__ import main; main()"
        )
        command = [sys.executable, "-c", code, "run", "--local", *arguments]
        self.process = subprocess.Popen(
            command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "COLUMNS": "120"},
        )  # fmt: skip
        self.children: list[psutil.Process] = []

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.communicate(timeout=60)

    def await_feed(self) -> None:
        """Until a feed runs."""
        end = time.monotonic() + 60
        while not any("feed" in words for words in self._look()):
            assert self.process.poll() is None and time.monotonic() < end, self.process.communicate()
            time.sleep(0.02)

    def agent(self) -> psutil.Process:
        """The one agent."""
        return next(each for each in self.children if "run" in each.cmdline())

    def end(self) -> tuple[int, str, str]:
        """Exit code, stdout, stderr; nothing that it started is left."""
        out, err = self.process.communicate(timeout=120)
        _, alive = psutil.wait_procs(self.children, timeout=20)
        assert alive == []
        return self.process.returncode, out, err

    def _look(self) -> list[list[str]]:
        """The command lines of its children; a child may go while it is looked at."""
        found = []
        with suppress(psutil.NoSuchProcess):
            self.children = psutil.Process(self.process.pid).children()
        for each in self.children:
            with suppress(psutil.NoSuchProcess):
                found.append(each.cmdline())
        return found


def _report(here: Path) -> dict[str, Any]:
    (path,) = here.glob("runs/*/report.json")
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def test_ctrl_c_ends_the_feeds_and_what_came_is_reported(here: Path) -> None:
    with Running(here, "--for", "1 h") as running:
        running.await_feed()
        running.process.send_signal(signal.SIGINT)
        code, out, err = running.end()
    assert code == 130, out + err
    assert "interrupted" in err and "Traceback" not in out + err
    books = _report(here)["conservation"]
    assert books["balanced"] and ("balanced: " if books["admitted"] else "nothing was admitted") in out
    assert not (here / "addresses.json").exists()


def test_a_closed_terminal_leaves_nothing_behind(here: Path) -> None:
    with Running(here, "--for", "1 h") as running:
        running.await_feed()
        running.process.send_signal(signal.SIGHUP)
        code, out, err = running.end()
    assert code == 128 + signal.SIGHUP, out + err


def test_a_killed_agent_is_named_and_the_command_comes_to_an_end(here: Path) -> None:
    with Running(here, "--for", "1 h", "--json") as running:
        running.await_feed()
        running.agent().kill()
        code, out, err = running.end()
    assert code == 1, out + err
    assert any("node a: " in line for line in json.loads(out)["missing"])
    assert "Traceback" not in err
    assert not _report(here)["completeness"]["complete"]


def test_a_plan_runs_and_a_bad_line_is_named_and_the_rest_reported(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "side.csv").write_text("x\n5\n6,7\n")
    given = [here / "query.yaml"], here / "cluster.yaml", [here / "operators.py"]
    (here / "operators.json").write_text("{}")
    with installed.listed(*given) as found:
        assert found.written == here / "operators.json"
    with installed.listed(*given) as found:
        assert found == (None, None)
    made = planner.make_plan(here / "query.yaml", here / "cluster.yaml", Choices())
    plan_file.write(made, here / "my.json")
    (here / "cluster.yaml").unlink()
    assert _run(monkeypatch, "--local", "--plan", "my.json", "--feed", "beat=feed.jsonl") == 2
    said, told = capsys.readouterr()
    assert "\nsource side: side.csv:3: 2 cells under a header of 1" in told
    assert _report(here)["outputs"]["out"]["delivered"] == 5
    assert "\nout: " in said
    assert "balanced: 5 tuples admitted, each accounted for" in said


TROUBLED = """
shimekiri: 1
query: troubled
sources:
  fast: {at: a, type: json, arrival: {burst: 4, period: 1 s}, max_age: 9 s}
  bad: {at: a, type: json, arrival: {rate: 100}, max_age: 9 s}
  slow: {at: b, type: json, arrival: {rate: 10}, max_age: 9 s}
  silent: {at: a, type: json, arrival: {rate: 10}, max_age: 9 s}
operators:
  half: {run: filter, in: fast, cost: 50 us, nodes: [a]}
  both: {run: union, in: [half, silent], cost: 50 us, nodes: [a]}
  fails: {run: my.fails, in: bad, cost: 50 us, nodes: [a]}
  hangs: {run: my.hangs, in: slow, cost: 50 us, hang: 1 s, nodes: [b]}
outputs:
  filtered: {from: both, at: a, deadline: 30 s}
  failed: {from: fails, at: a, deadline: 30 s}
  hung: {from: hangs, at: b, deadline: 30 s}
"""
TWO_NODES = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", policy: edf}
  b: {address: "127.0.0.1:7710", policy: edf}
operators: operators.json
"""
FAILING = """
import time
from node_agent.sdk import operator

@operator("my.fails", inputs={"value": "json"}, output="json")
def fails(value):
    if value > 1:
        raise ValueError(f"no {value}")
    return object()

@operator("my.hangs", inputs={"value": "json"}, output="json")
def hangs(value):
    time.sleep(60)
"""


def test_why_tuples_did_not_become_results(here: Path) -> None:
    for path in here.iterdir():
        path.unlink()
    for name, text in (("query.yaml", TROUBLED), ("cluster.yaml", TWO_NODES), ("operators.py", FAILING)):
        (here / name).write_text(text)
    for name, tuples in (("fast", 30), ("bad", 4), ("slow", 1)):
        (here / f"{name}.jsonl").write_text("".join(f"{number}\n" for number in range(tuples)))
    with Running(here, "-v", "--rate", "fast=1000") as running:
        code, out, err = running.end()
    assert code == 0, out + err
    (run,) = (here / "runs").iterdir()
    log = Path("runs", run.name, "logs", "a.log")
    lines = out.splitlines()

    assert "source silent: nothing fed it (--feed silent=FILE would); output filtered may need it" in lines
    shed = json.loads((run / "report.json").read_text())["shed"]["sources"]["fast"]["policies"]["arrivals"]["tuples"]
    assert any(
        line.startswith(f"shed: {shed} of 30 tuples of source fast on a: beyond the declared arrivals; raise its 'arr")
        for line in lines
    )
    (told,) = (line for line in lines if line.startswith("output filtered: missed "))
    assert told.startswith("output filtered: missed 0 to ") and "policed (beyond what was declared)" in told
    assert f"lost: 2 tuples at fails on a, because an operator raised; the trace back is in {log}" in lines
    assert (
        "lost: 2 tuples at fails on a, because they could not be encoded; return what the type of the output can carry"
        in lines
    )
    assert "  fails raised first: ValueError: no 2, at operators.py:8, in fails" in lines
    unfit = "node a: operator fails: my.fails gave what a stream of json cannot carry: not a JSON value: Object of type"
    assert any(line.startswith(unfit) for line in lines), out
    assert any(line.startswith("operators were checked: ") for line in lines)
    assert "lost: 1 tuple at hangs on b, because an operator hung; raise its 'hang:'" in out
    assert "node b: runtime operator hung: hangs was killed after 1 s; it is started again" in lines
    assert "output failed: 100 % missed (lost); below is why tuples were shed or lost" in lines
    assert "which hop spent the time" not in out
    assert (
        " a runtime warning: operator fails raised; its tuple is lost\n    Traceback (most" in (here / log).read_text()
    )
    assert not (here / "operators.json").exists()


IDLE = """
shimekiri: 1
query: idle
sources:
  s: {at: a, type: json, arrival: {rate: 100}}
operators:
  nap: {run: my.nap, in: s, cost: 100 us, nodes: [a]}
  picky: {run: my.picky, in: s, cost: 100 us, nodes: [a]}
outputs:
  naps: {from: nap, at: a, deadline: 30 s}
  picked: {from: picky, at: a, deadline: 30 s}
"""
NAPPING = """
import time
from node_agent.sdk import operator

@operator("my.nap")
def nap(value):
    time.sleep(0.02)
    return value

@operator("my.picky")
def picky(value):
    if value < 47:
        raise ValueError(f"no {value}")
    return None
"""


def test_an_operator_that_sleeps_and_one_that_raises_are_told_as_such(here: Path) -> None:
    for path in here.iterdir():
        path.unlink()
    for name, text in (("query.yaml", IDLE), ("cluster.yaml", TWO_NODES), ("operators.py", NAPPING)):
        (here / name).write_text(text)
    (here / "s.jsonl").write_text("".join(f"{number}\n" for number in range(48)))
    with Running(here, "--no-check-operators") as running:
        code, out, err = running.end()
    assert code == 0, out + err
    lines = out.splitlines()
    assert "too short" not in out
    assert "lost: 47 tuples at picky on a, because an operator raised; the trace back is in " in out
    (told,) = [line for line in lines if line.startswith("nap on a: ")]
    assert "instances ran a tenth longer than the plan counts" in told
    (why,) = [line for line in lines if line.startswith("  nap on a: a call takes ")]
    assert "it waits, for a file, a socket or in a sleep" in why and "declare a cost that has it" in why
    assert not any("operators were checked" in line for line in lines)
    if not any(line.startswith("picky on a: ") for line in lines):  # which a slow machine may stretch
        assert "'coordinator profile' measures" not in out


def test_the_end_of_a_trace_back_in_one_line() -> None:
    text = 'told\nTraceback (most recent call last):\n  File "/x/a.py", line 1, in f\n    g()\n'
    assert exception(text + '  File "/x/b.py", line 22, in g\n    h\n    ^\nKeyError: 1\nmore') == (
        "KeyError: 1, at /x/b.py:22, in g"
    )
    assert exception(text + "E: \x1b[2J") == "E: \\x1b[2J, at /x/a.py:1, in f"
    assert exception(text) == exception("told") == ""


def test_operators_json_is_left_alone_where_it_still_holds(here: Path) -> None:
    def written() -> bool:
        with installed.listed([here / "query.yaml"], here / "cluster.yaml", [here / "operators.py"]) as found:
            return found.written is not None

    (here / "operators.json").write_text("")
    assert written() and not written()
    known = json.loads((here / "operators.json").read_text())
    mine = {"codecs": ["json"], "fields": {}, "operators": {"my.same": known["operators"]["my.same"]}}
    (here / "operators.json").write_text(json.dumps(known | mine))  # others are installed, and no matter
    assert not written()
    mine["operators"] = {}  # the query needs it
    (here / "operators.json").write_text(json.dumps(known | mine))
    assert written()
    (here / "operators.py").write_text(OPERATORS.replace('"value"', '"other"').replace("(value)", "(other)"))
    assert written()


def test_what_cannot_be_run_is_told_before_anything_starts(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*arguments: str, code: int = 2) -> str:
        assert _run(monkeypatch, *arguments) == code
        return capsys.readouterr().err

    assert "works with --local only" in told()
    assert "--for: '10' has no unit" in told("--local", "--for", "10")
    assert "--feed beat: write --feed SOURCE=..." in told("--local", "--feed", "beat")
    assert "none.py: is no file" in told("--local", "--operators", "none.py")
    assert "--feed bent=x: source 'bent' is unknown; did you mean 'beat'?" in told("--local", "--feed", "bent=x")
    assert "x.jsonl: is not there" in told("--local", "--feed", "beat=x.jsonl")
    assert "--rate beat=0: give tuples per second" in told("--local", "--rate", "beat=0")
    assert "none: is not there; name query.yaml" in told("--local", "none")
    (here / "runs").write_text("")
    assert "runs: cannot be made: File exists" in told("--local")
    (here / "operators.py").write_text("import nowhere")
    assert "nowhere" in told("--local")
    (here / "operators.py").write_text(OPERATORS)
    (here / "query.yaml").write_text(QUERY.replace("deadline: 5 s", "deadline: 60 us"))
    lines = told("--local", code=3).splitlines()
    assert any(line.startswith("infeasible: ") for line in lines)
    assert any("coordinator explain query.yaml cluster.yaml" in line for line in lines)
    assert not (here / "addresses.json").exists() and not list(here.glob("runs/*"))


def test_files_by_convention(here: Path) -> None:
    assert files.inputs([]) == ([Path("query.yaml")], Path("cluster.yaml"))
    assert files.inputs([here]) == ([here / "query.yaml"], here / "cluster.yaml")
    assert files.inputs([here / "query.yaml"]) == ([here / "query.yaml"], here / "cluster.yaml")
    assert files.inputs([here / "cluster.yaml"]) == ([here / "query.yaml"], here / "cluster.yaml")
    (here / "two.yaml").write_text(QUERY)
    three = [here / name for name in ("query.yaml", "two.yaml", "cluster.yaml")]
    assert files.inputs(three) == (three[:2], three[2])


def test_the_example_has_a_file_per_source() -> None:
    (query,), _ = files.inputs([EXAMPLE])
    sources = query_reader.load(query).sources
    chosen, left = feeds(_plan(*(each.name for each in sources)), NOTHING, [EXAMPLE])
    assert [each.path for each in chosen] == [EXAMPLE / f"{each.name}.jsonl" for each in sources] and not left
    for each in chosen:
        assert all(isinstance(json.loads(line), dict) for line in each.path.read_text().splitlines())


def _plan(*names: str, arrival: Mapping[str, Any] = EVERY_SECOND, **more: Any) -> Plan:
    """With these sources."""
    sources = {name: {"at": "a", "arrival": arrival, **more} for name in names}
    return plan_document.of(whole({"graph": {"sources": sources}}))


def test_feeds_by_convention(tmp_path: Path) -> None:
    def chosen(plan: Plan, wishes: Wishes = NOTHING) -> tuple[dict[str, str], list[str]]:
        found, left = feeds(plan, wishes, [tmp_path])
        return {each.source: each.path.name for each in found}, left

    def refused(plan: Plan) -> str:
        with pytest.raises(CoordinatorError) as error:
            feeds(plan, NOTHING, [tmp_path])
        return str(error.value)

    assert "has nothing to feed: write x.jsonl beside it" in refused(_plan("x"))
    (tmp_path / "feed.jsonl").write_text("1\n")
    assert chosen(_plan("x")) == ({"x": "feed.jsonl"}, [])
    assert "feed.jsonl: is for one of the sources x, y; call it like that one, as in x.jsonl" in refused(
        _plan("x", "y")
    )
    (tmp_path / "y.mcap").write_text("")
    assert chosen(_plan("x", "y")) == ({"x": "feed.jsonl", "y": "y.mcap"}, [])
    (tmp_path / "x.csv").write_text("a\n")
    assert chosen(_plan("x", "y", "z", "w")) == ({"x": "x.csv", "y": "y.mcap"}, ["z", "w"])
    (tmp_path / "other.csv").write_text("a\n")
    mine = Wishes({"y": str(tmp_path / "other.csv")}, {"x": "5"}, {"y": "t:ms"}, {})
    found, _ = feeds(_plan("x", "y"), mine, [tmp_path])
    assert [each.pace.options for each in found] == [("--rate", "5"), ("--by", "t", "--unit", "ms")]
    found, _ = feeds(_plan("y", "z"), Wishes({}, {}, {}, {"y": "/t"}), [tmp_path])
    assert [(each.pace.options, each.options) for each in found] == [
        ((), ("--topic", "/t")), (("--rate", "1", "--steady"), ()),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arrival", "limit", "rate"),
    [
        ({"kind": "burst", "burst": 20, "period_ns": 500_000_000}, None, 40),
        ({"kind": "rate", "rate_per_s": 12.5, "burst": 3}, None, 12.5),
        ({"kind": "jcp", "period_ns": 20_000_000}, None, 50),
        ({"kind": "rate", "rate_per_s": 50, "burst": 1}, {"tuples": 10, "span_ns": 10**9}, 10),
        # 0, 0, 1 s, 1 s: three in a row take 1 s here, so no more than two per second in equal gaps
        ({"kind": "trace", "counts": [1, 2, 3, 4], "spans_ns": [0, 0, 10**9, 10**9]}, None, 2),
    ],
)
def test_the_declared_rate_is_never_beyond_the_declaration(
    arrival: dict[str, Any], limit: dict[str, Any] | None, rate: float
) -> None:
    made = _plan("s", arrival=arrival, **({"limit": limit} if limit else {}))
    assert declared_rate(made.graph.sources["s"]) == pytest.approx(rate)


def test_a_feed_that_waits_for_an_overloaded_node_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text("1\n")
    limit = {"tuples": 1, "span_ns": 2 * 10**9}
    made = _plan("s", limit=limit)
    over = replace(made, solver=replace(made.solver, over_caps={"a": 1.4}))
    waits, _ = feeds(made, NOTHING, [tmp_path])
    asked, _ = feeds(made, Wishes({}, {"s": "1"}, {}, {}), [tmp_path])
    assert waits[0].pace.wording == "at 0.5 a second, as 'max_rate' lets pass"
    [said] = run_summary.waiting_feeds(over, waits)
    assert "its feed waits while the node is behind; '--rate s=0.5' does not" in said
    assert not [*run_summary.waiting_feeds(made, waits), *run_summary.waiting_feeds(over, asked)]
