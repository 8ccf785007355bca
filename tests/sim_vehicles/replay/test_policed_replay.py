"""A source that gets more than it declared: the warnings that policing took away are in no share of zero misses."""

from pathlib import Path

from typer.testing import CliRunner

from coordinator.model.choices import Choices
from coordinator.report.facts.reader import read_run
from coordinator.report.page.page import page
from coordinator.report.page.terminal import notes
from coordinator.report.verdict import verdict
from coordinator.solve import planner
from sim_vehicles.cli.app import app

QUERIES = Path(__file__).resolve().parents[3] / "sim_vehicles" / "queries"
STRETCH = ["--start", "9s", "--until", "11.5s"]


def test_policed_messages_do_not_read_as_nothing_missed(tmp_path: Path) -> None:
    """Fifteen messages per half second are declared, and every station sends by the rules of ETSI, several at once."""
    query, cluster = QUERIES / "collision_guaranteed.yaml", QUERIES / "cluster_paper.yaml"
    plan, out = tmp_path / "plan.json", tmp_path / "run"
    plan.write_text(planner.make_plan(query, cluster, Choices(model="sound")).text())
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
