"""The lab of network namespaces, and the way to two nodes of one's own walked in it, under mutual TLS."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.lab import namespaces
from coordinator.lab.namespaces import HOSTS, NAMES, Lab, LabError, Line, remove_left
from coordinator.lab.walk import EXAMPLE, FILES, steps
from tests.sentences import refused

ROOT = Path(__file__).parents[3]
in_a_lab = pytest.mark.usefixtures("allowed")


@pytest.fixture(scope="module")
def allowed() -> None:
    if why := namespaces.why_not():
        pytest.skip(why)


def left(pid: int) -> list[str]:
    """What is there of the labs of that process."""
    stem = f"{namespaces.PREFIX}-{pid}-*"
    return [str(path) for folder in (NAMES, HOSTS) for path in folder.glob(stem)]


@in_a_lab
def test_two_nodes_from_certificates_to_a_report(tmp_path: Path) -> None:
    """As the example stands, but for limits that a machine under load keeps, too."""
    example = tmp_path / "example"
    example.mkdir()
    for name in FILES:
        shutil.copy(EXAMPLE / name, example / name)
    query = (example / "query.yaml").read_text()
    roomy = {
        "deadline: 500 ms": "deadline: 60 s",
        "max_age: 100 ms": "max_age: 10 s",
        "tolerance: 50 ms": "tolerance: 5 s",
    }
    for limit, more in roomy.items():
        assert limit in query
        query = query.replace(limit, more)
    (example / "query.yaml").write_text(query)
    walked = steps(example, tmp_path)
    count = len(walked.results)
    (facts,) = walked.report.outputs.values()
    assert count == facts.met > 0
    assert not any((facts.late, facts.shed, facts.lost, facts.undecidable))
    assert walked.report.conservation.admitted == walked.report.conservation.accounted == count
    refused = walked.refused
    assert "speaks TLS" in refused["feed without an identity"] and "speaks TLS" in refused["listen without an identity"]
    assert "of another cluster" in refused["feed with another cluster's identity"]
    assert "does not take leaked for the coordinator's" in refused["stop with a client's identity"]
    assert not left(os.getpid())


@in_a_lab
def test_machines_reach_each_other_and_nothing_else() -> None:
    ask = "import socket,sys; print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 2).getpeername()[0])"
    serve = "import socket; s = socket.create_server(('0.0.0.0', 7)); print('on', flush=True); s.accept(); s.accept()"
    with Lab(["pi1", "pi2"], subnet="10.78.3.0/29") as lab, socket.create_server(("0.0.0.0", 0)) as host:
        assert lab.addresses == {"pi1": "10.78.3.1", "pi2": "10.78.3.2"}
        words = lab.command("pi2", [sys.executable, "-c", serve])
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None and server.stdout.readline() == "on\n"
            for name in ("10.78.3.2", "pi2.local"):
                assert lab.run("pi1", [sys.executable, "-c", ask, name, 7]).stdout == "10.78.3.2\n"
        own = lab.run("pi1", [sys.executable, "-c", ask, "127.0.0.1", host.getsockname()[1]])
        assert own.returncode != 0 and "ConnectionRefused" in own.stderr
        out = lab.run("pi1", [sys.executable, "-c", ask, "192.0.2.1", 80])
        assert out.returncode != 0 and "unreachable" in out.stderr
    assert not left(os.getpid())


@in_a_lab
def test_a_line_has_delay_and_loss_or_it_is_said_why_not() -> None:
    try:
        with Lab(["a"], Line("5ms", "1ms", "0.5%")) as lab:
            told = subprocess.run(["tc", "-n", lab.namespace("a"), "qdisc"], capture_output=True, text=True, check=True)
            assert "delay 5ms" in told.stdout and "loss 0.5%" in told.stdout
    except LabError as error:
        assert error.mistake.code in {"no_netem", "not_installed"}
    assert not left(os.getpid())


def program(*words: str) -> "subprocess.Popen[str]":
    """As from a terminal: what runs in the background of a shell ignores Ctrl-C, and so do these tests there."""
    command = [sys.executable, "-m", "coordinator.lab", *words]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )  # fmt: skip


@in_a_lab
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_it_is_gone_after_a_signal_with_what_runs_there(number: signal.Signals, code: int) -> None:
    with program("a", "b") as lab:
        assert lab.stderr is not None
        lines = [lab.stderr.readline() for _ in range(3)]
        assert "10.77.0.2" in lines[1] and "Ctrl-C" in lines[2]
        inside = subprocess.Popen(["ip", "netns", "exec", f"{namespaces.PREFIX}-{lab.pid}-b", "sleep", "600"])
        while not Path(f"/proc/{inside.pid}/comm").read_text().startswith("sleep"):
            pass
        lab.send_signal(number)
        assert inside.wait(30) == -signal.SIGTERM and lab.wait(30) == code and not left(lab.pid)


@in_a_lab
def test_what_a_killed_lab_has_left_can_be_removed() -> None:
    with program("a") as lab:
        assert lab.stderr is not None and lab.stderr.readline()
        lab.kill()
    assert left(lab.pid)
    assert f"{namespaces.PREFIX}-{lab.pid}" in remove_left() and not left(lab.pid)


@in_a_lab
def test_one_command_and_its_exit_code() -> None:
    with program("a", "--at", "a", "--", "sh", "-c", "cat /etc/hosts; exit 7") as lab:
        out, _ = lab.communicate(timeout=60)
    assert lab.returncode == 7 and "10.77.0.1 a a.local" in out and not left(lab.pid)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: Lab([]), "bad_name"),
        (lambda: Lab(["a", "a"]), "bad_name"),
        (lambda: Lab(["A b"]), "bad_name"),
        (lambda: Lab(["a"], subnet="10.0.0.0/33"), "bad_value"),
        (lambda: Lab(["a", "b", "c"], subnet="10.0.0.0/30"), "too_many_nodes"),
        (lambda: Lab(["a"], Line(delay="5")), "bad_value"),
        (lambda: Lab(["a"], Line(loss="5ms")), "bad_value"),
        (lambda: Lab(["a"], Line(jitter="5ms")), "missing_parameter"),
    ],
)
def test_what_makes_no_lab(make: Callable[[], Lab], code: str) -> None:
    with refused(code, LabError):
        make()


def test_where_it_is_not_allowed_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda name: f"/sbin/{name}")
    assert namespaces.why_not() == "only root may make network namespaces: run it with sudo"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert namespaces.why_not() == "'ip' is not installed: install iproute2"


def test_bad_arguments_end_with_two() -> None:
    for words in (["a", "a"], ["a", "--delay", "5"], ["a", "--at", "b", "--", "true"], ["--walk", "--loss", "half"]):
        with program(*words) as lab:
            said = lab.communicate(timeout=60)[1]
        assert lab.returncode == 2 and "python -m coordinator.lab: error: " in said.splitlines()[-1]
