"""`coordinator report`: files, tables, exit codes and the page."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from coordinator.cli.commands.report import UnbalancedError, register
from coordinator.report.facts.reader import NoRunError, read_run
from coordinator.report.page.page import page
from coordinator.report.verdict import verdict
from tests.coordinator.report.synthetic import MS, Cluster, everything, plan_document, play

JSON_SCRIPT = r'<script type="application/json">(.*?)</script>'
app = typer.Typer()
register(app)


@app.callback()
def _group() -> None:
    """As in the real command line, `report` is one of several."""


def report(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, arguments), "--engine", "python"])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return play(everything(), 3, tuples=40, mishaps=0.05).save(tmp_path / "runs" / "one")


def test_one_run_gets_a_report_and_a_page(run: Path) -> None:
    result = report(run)
    assert result.exit_code == 0, result.output
    for word in ("near", "far", "mixed", "missed", "balanced", str(run / "report.html")):
        assert word in result.output
    document = json.loads((run / "report.json").read_text())
    assert {"run", "plan_hash", "completeness", "outputs", "conservation", "blame"} <= set(document)
    assert set(document["outputs"]["far"]) >= {
        "deadline_ns", "met", "late", "shed", "lost", "undecidable", "miss_ratio", "miss_ratio_hi",
        "miss_ratio_paper", "latency_ns",
    }  # fmt: skip
    assert {"admitted", "accounted", "by_outcome", "balanced", "problems"} <= set(document["conservation"])
    assert (run / "report.html").exists()


def test_several_runs_are_compared_beside_the_first(run: Path) -> None:
    other = play(everything(), 5, tuples=40).save(run.parent / "two")
    result = report(run, other)
    assert result.exit_code == 0, result.output
    assert (run.parent / "comparison.html").exists()
    assert (other / "report.json").exists()
    assert "one" in result.output
    assert "two" in result.output
    assert report(run, other, "-o", run.parent / "elsewhere").exit_code == 0
    assert (run.parent / "elsewhere" / "comparison.html").exists()


def test_no_figure_is_cut_short_where_runs_are_side_by_side(run: Path) -> None:
    """Names, hundreds of results and latencies of seconds need more than a line has."""
    others = [play(everything(), seed, tuples=300, mishaps=0.05).save(run.parent / f"line-{seed}") for seed in range(3)]
    found = report(*others)
    assert "…" not in found.output
    document = json.loads((others[0] / "report.json").read_text())
    results = found.output[found.output.index("\nresults") :]
    row = next(line for line in results.splitlines() if "near" in line and "line-0" in line)
    assert f" {document['outputs']['near']['met']} " in row


def test_json_for_machines(run: Path) -> None:
    result = report(run, "--json")
    document = json.loads(result.stdout)
    assert document["reports"][0] == json.loads((run / "report.json").read_text())
    assert document["page"] == str(run / "report.html")


def test_an_unbalanced_ledger_is_exit_code_3_with_the_reason_and_still_a_report(run: Path) -> None:
    segment = run / "trace/raw/b/0000000000000001/0000.trace"
    segment.write_bytes(segment.read_bytes()[:-64])
    result = report(run)
    assert isinstance(result.exception, UnbalancedError)
    assert result.exception.exit_code == 3
    assert "does not balance" in result.exception.lines()[0]
    assert "were found" in str(result.exception)
    assert not json.loads((run / "report.json").read_text())["conservation"]["balanced"]


def test_a_miss_ratio_never_decides_the_exit_code(tmp_path: Path) -> None:
    ops = [{"name": "o", "at": "a", "in": ["s"]}]
    cluster = play(plan_document(["a"], {"s": "a"}, ops, {"out": ("o", "a", 1)}), 1, tuples=5, mishaps=0, many=0)
    path = cluster.save(tmp_path / "late")
    assert report(path).exit_code == 0
    assert json.loads((path / "report.json").read_text())["outputs"]["out"]["miss_ratio"] == 1.0


def test_an_incomplete_trace_is_told_with_its_reason(run: Path) -> None:
    document = json.loads((run / "run.json").read_text())
    document["traces"][0]["reachable"] = False
    (run / "run.json").write_text(json.dumps(document))
    result = report(run)
    assert f"the trace of {document['traces'][0]['node']}/" in result.output
    assert "is incomplete: not reachable when the trace was collected" in result.output


def test_a_directory_that_is_no_run_is_exit_code_2(tmp_path: Path) -> None:
    result = report(tmp_path)
    assert isinstance(result.exception, NoRunError)
    assert result.exception.exit_code == 2
    (line,) = result.exception.lines()
    assert line.startswith(f"{tmp_path}: no run: run.json cannot be read (No such file or directory); give a directory")


@pytest.mark.parametrize(
    ("text", "kept"),
    [('{"verdict": {"outcome": "AVOIDED"}}', True), ("{", False), ("[]", False), ("[" * 100_000, False)],
    ids=["whole", "cut", "list", "nested"],
)
def test_a_replays_verdict_is_merged(run: Path, text: str, kept: bool) -> None:
    (run / "replay.json").write_text(text)
    assert report(run).exit_code == 0
    document = json.loads((run / "report.json").read_text())
    assert document.get("verdict") == ({"outcome": "AVOIDED"} if kept else None)
    assert ("AVOIDED" in (run / "report.html").read_text()) is kept


class Tags(HTMLParser):
    """Counts start tags."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] = self.seen.get(tag, 0) + 1


def test_names_from_files_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    document = plan_document(
        [evil], {"s": evil}, [{"name": evil + "o", "at": evil, "in": ["s"]}], {evil: (evil + "o", evil, MS)}
    )
    cluster = Cluster(document, 1, mishaps=0, many=0)
    cluster.nodes[0].name = "a"  # a directory of a node that the plan lacks: named under completeness
    read = read_run(cluster.save(tmp_path / "run"))
    text = page([(read, verdict(read))])
    tags = Tags()
    tags.feed(text)
    assert "img" not in tags.seen
    assert tags.seen["script"] - text.count('<script type="application/json">') == 1
    assert evil not in text


def test_the_page_is_self_contained_and_its_drawings_are_json(run: Path) -> None:
    read = read_run(run)
    text = page([(read, verdict(read)), (read, verdict(read))])
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    drawings = [json.loads(found) for found in re.findall(JSON_SCRIPT, text)]
    outputs, runs = 3, 2
    assert len(drawings) >= outputs * 2 + runs  # latency twice per output, incidents per run
    assert len(text) < 300_000


def test_nothing_delivered_still_makes_a_page(tmp_path: Path) -> None:
    cluster = Cluster(everything(), 1)
    cluster.finish()
    path = cluster.save(tmp_path / "run")
    done = report(path)
    assert isinstance(done.exception, UnbalancedError) and "no tuple was admitted" in str(done.exception)
    assert "Nothing was delivered" in (path / "report.html").read_text()
