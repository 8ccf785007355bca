"""A source that gets more than it declared: the warnings that policing took away are in no share of zero misses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coordinator.model.choices import Choices
from coordinator.report.facts.reader import read_run
from coordinator.report.page.page import page
from coordinator.report.page.terminal import notes
from coordinator.report.verdict import verdict
from coordinator.solve import planner
from sim_vehicles.cli.app import app
from sim_vehicles.replay.replay_document import from_document

QUERIES = Path(__file__).resolve().parents[3] / "sim_vehicles" / "queries"
STRETCH = ["--start", "9s", "--until", "11.5s"]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    query, cluster = QUERIES / "collision_guaranteed.yaml", QUERIES / "cluster_paper.yaml"
    path.write_text(planner.make_plan(query, cluster, Choices(model="sound")).text())
    return path


def test_policed_messages_do_not_read_as_nothing_missed(plan: Path, tmp_path: Path) -> None:
    """Fifteen messages per half second are declared, and every station sends by the rules of ETSI, several at once."""
    out = tmp_path / "run"
    arguments = ["replay", "crossing_50", "--virtual", plan, "--messages", "etsi", "--out", out, *STRETCH]
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code in {0, 3}, done.output
    run = read_run(out)
    found = verdict(run)
    report = found.document()
    policed = report["offered"]["v2v"]["policed"]
    assert policed > 20 and report["offered"]["v2v"]["offered"] == report["offered"]["v2v"]["admitted"]
    assert f"{policed} tuples policed: beyond what their source declared, in all laps" in done.output
    warning = report["outputs"]["warning"]
    assert warning["miss_ratio"] == 0.0, "of what was delivered"
    low, high = warning["missed_of_offered"]
    open_ = sum(warning["between"].values())
    assert low == 0.0 and high == open_ / (open_ + warning["met"]) > 0.3
    assert warning["between"]["policed"] >= policed, "and results beyond a declared selectivity"
    share = f"0 to {100 * high:.3g} %"
    (line,) = (line for line in notes([found]) if line.startswith("output warning: "))
    assert line.startswith(f"output warning: missed {share} of what was offered: between lie ")
    assert f"{warning['between']['policed']} policed (beyond what was declared)" in line
    assert f'<b class="bad">{share}</b>' in page([(run, found)])
    assert report["outputs"]["control"]["between"]["policed"] == 0


def test_a_verdict_says_what_became_of_the_messages_about_the_crossing_vehicle(plan: Path, tmp_path: Path) -> None:
    """Late messages are refused, and others policed; the tuple that decided is one of those that were admitted."""
    out = tmp_path / "run"
    arguments = ["replay", "crossing_50", "--virtual", plan, "--messages", "etsi", "--out", out, *STRETCH]
    arguments += ["--channel", "delay=20ms,jitter=20ms", "--phases", 3]
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code in {0, 3}, done.output
    what = from_document(json.loads((out / "replay.json").read_text()))
    assert len(what.laps) == 3
    for number, lap in enumerate(what.laps, 1):
        messages, deciding = lap.crossing_messages, lap.found.deciding
        assert messages is not None and messages.policed is not None and deciding is not None
        assert (deciding.source, number, deciding.seq) in messages.admitted
        assert messages.offered == messages.refused + len(messages.admitted)
    found = [lap.crossing_messages for lap in what.laps if lap.crossing_messages is not None]
    assert any(one.refused for one in found) and any(one.policed for one in found)
    assert what.verdict is not None and what.verdict.crossing_messages is not None
    shown = what.verdict.crossing_messages
    counts = f"{shown.refused} refused, {shown.policed} policed, {shown.shed} shed, {shown.lost} lost"
    assert f"about X      {shown.offered} messages until the ego knew: {counts}" in done.output
    assert f"{shown.offered}, of them {counts}" in (out / "scene.html").read_text()
