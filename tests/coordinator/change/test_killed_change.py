"""A command that changes what runs is killed at each step; the next one finds what it has left, and goes on."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from coordinator.change import apply_change, intention
from coordinator.cli import app
from coordinator.fleet.deployment import deployed_plans
from coordinator.fleet.local import local_agents
from coordinator.plan import plan_file
from tests.coordinator.change.test_change_live import Lane
from tests.sampling import sample

# The command in a process of its own, which kills itself at a step: `FUNCTION`, before or after its call number N.
KILLED = """
import importlib, os, signal, sys
from coordinator.cli import app
module, name, number, when, *words = sys.argv[1:]
owner = importlib.import_module(module.partition(":")[0])
owner = getattr(owner, module.partition(":")[2]) if ":" in module else owner
true, calls = getattr(owner, name), [0]
def killed(*given, **named):
    calls[0] += 1
    if calls[0] == int(number) and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    done = true(*given, **named)
    if calls[0] == int(number) and when == "after":
        os.kill(os.getpid(), signal.SIGKILL)
    return done
setattr(owner, name, killed)
app.register()
app.app(words)
"""
STEPS = {  # what is killed where; whether what was meant is decided by then
    "the next plan is written": (("coordinator.change.intention", "written", "1", "before"), False),
    "the intention is written": (("coordinator.fleet.deployment.deploy", "deploy", "1", "before"), False),
    "all have prepared": (("coordinator.fleet.deployment.deploy", "_answer", "1", "before"), False),
    "all have committed": (("coordinator.fleet.deployment.deploy", "_answer", "3", "before"), True),
    "the files are put in step": (("coordinator.change.intention:Intention", "put_in_step", "1", "before"), True),
    "the old plan is kept": (("coordinator.plan.plan_file", "write", "2", "after"), True),
    "they are in step": (("coordinator.change.intention:Intention", "put_in_step", "1", "after"), True),
}


@pytest.fixture(scope="module", autouse=True)
def commands() -> None:
    app.register()


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    found = Lane(tmp_path_factory.mktemp("killed"))
    yield found
    local_agents.stop(found.agents)


def _killed(lane: Lane, step: tuple[str, ...], *words: str) -> None:
    given = [*words, "--addresses", str(lane.addresses.path), "--plan", str(lane.plan)]
    done = subprocess.run([sys.executable, "-c", KILLED, *step, *given], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr


@pytest.mark.parametrize("names", sample([list(STEPS)[2:5], list(STEPS)], of=2), ids=len)
def test_the_next_command_goes_on_whenever_one_was_killed(
    names: list[str], lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In `make test` at the three steps around the decision."""
    monkeypatch.setattr(apply_change, "BEGUN_S", 0.2)
    visits = str(lane.root / "visits.yaml")
    for number, name in enumerate(names):
        step, decided = STEPS[name]
        removing = number % 2 == 1
        if removing and "visits" not in plan_file.read(lane.plan).queries:
            assert lane.command("add", visits)[0] == 0
        elif not removing and "visits" in plan_file.read(lane.plan).queries:
            assert lane.command("remove", "visits")[0] == 0
        words = ("remove", "visits") if removing else ("add", visits)
        _killed(lane, step, *words)
        undone = ("add", visits) if removing else ("remove", "visits")
        code, said = lane.command(*(undone if decided else words))
        assert code == 0, f"killed when {name}: {said}"
        runs = plan_file.read(lane.plan)
        assert ("visits" in runs.queries) == (removing if decided else not removing), name
        assert {hash_ for plans in lane.committed().values() for hash_, _ in plans} >= {bytes.fromhex(runs.hash)}, name
        assert not intention.file_of(lane.plan).exists()


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_removal_that_was_killed_when_it_was_decided_is_done_when_it_is_asked_for_again(
    lane: Lane, form: str
) -> None:
    if "visits" not in plan_file.read(lane.plan).queries:
        assert lane.command("add", str(lane.root / "visits.yaml"))[0] == 0
    _killed(lane, STEPS["the files are put in step"][0], "remove", "visits")
    code, said = lane.command("remove", "visits", *(["--json"] if form == "json" else []))
    assert code == 0, said
    assert ('"removed": ["visits"]' if form == "json" else "visits: removed already") in said
    runs = plan_file.read(lane.plan)
    assert "visits" not in runs.queries and not intention.file_of(lane.plan).exists()
    assert {hash_ for plans in lane.committed().values() for hash_, _ in plans} >= {bytes.fromhex(runs.hash)}
    code, said = lane.command("remove", "visits")
    assert code == 2 and "has no query 'visits'" in said, "nothing was broken off this time"


def test_a_change_that_is_under_way_is_left_to_its_command(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    meant = intention.Intention(str(path), str(path), "ab" * 32, "cd" * 32)
    with intention.written(meant):
        assert intention.left(path) is None
    assert not intention.file_of(path).exists()
    intention.file_of(path).write_text('{"path": 1}')
    assert intention.left(path) is None, "it was cut off while it was written: nobody had been told"
    assert os.listdir(tmp_path) == ["plan.json.changing"]


@pytest.mark.parametrize("decided", [True, False])
def test_an_intention_stays_where_the_files_could_not_be_put_in_step(tmp_path: Path, decided: bool) -> None:
    """As on a full disk, after the agents had committed."""
    path = tmp_path / "plan.json"
    meant = intention.Intention(str(path), str(path), "a" * 64, "b" * 64)
    meant.waiting.write_text("the next plan")
    with pytest.raises(OSError, match="full"), intention.written(meant):
        if not decided:
            meant.waiting.unlink()
        raise OSError("full")
    assert intention.left(path) == (meant if decided else None)


def test_a_change_that_is_given_up_leaves_the_plan_that_is_kept(tmp_path: Path) -> None:
    """A query that was added is removed: the next plan is the one before, whose run can still be collected."""
    path = tmp_path / "plan.json"
    meant = intention.Intention(str(path), str(path), "a" * 64, "b" * 64)
    kept = deployed_plans.beside(path, meant.after)
    for each in (kept, meant.waiting):
        each.write_text("a plan")
    intention.file_of(path).write_text(json.dumps(asdict(meant)))
    assert intention.settle(path, {}) is None
    assert os.listdir(tmp_path) == [kept.name]
