"""The commands validate, plan and explain: exit codes, what they print and write."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.__main__ import main
from coordinator.errors import BadInputError
from coordinator.plan import plan_file
from coordinator.spec.files import schema
from tests.command_line import Said, run
from tests.coordinator.wording import Wording, facts, mended, printed

WORDING = Wording("explain", "plan.json")
ROOT = Path(__file__).parents[4]
Paper = Callable[[int], tuple[Path, Path]]


def _coordinator(*arguments: object) -> Said:
    return run(ROOT, shlex.join(["coordinator", *map(str, arguments)]))


def test_validate(paper: Paper) -> None:
    done = _coordinator("validate", *paper(15))
    assert (done.code, done.err) == (0, "")
    assert "3 sources, 21 operators, 3 outputs, on 2 nodes: valid" in done.out
    alone = json.loads(_coordinator("validate", paper(15)[0], "--json").out)
    assert alone["valid"] is True


def test_bad_input_is_2_and_says_where(paper: Paper) -> None:
    query, cluster = paper(15)
    query.write_text(query.read_text().replace("deadline: 30 ms", "deadline: 0 ms").replace("cost: 1 ms", "cost: 1", 1))
    done = _coordinator("plan", query, cluster, "-o", query.parent / "plan.json")
    assert done.code == 2
    assert done.err.splitlines()[0].startswith(f"{query}:10: operators.O1.cost is a duration without a unit")
    assert done.err.splitlines()[1].startswith(f"{query}:23: outputs.control.deadline is '0 ms'")
    assert not (query.parent / "plan.json").exists()


def test_infeasible_is_3_and_says_why(paper: Paper) -> None:
    query, cluster = paper(27)
    done = _coordinator("plan", query, cluster, "--model", "paper", "-o", query.parent / "plan.json")
    assert done.code == 3
    assert done.err.startswith("infeasible: output warning: its path needs 307 ms before 300 ms")
    assert f"the smallest changes that mend it: coordinator explain {query} {cluster} --model " in done.err
    assert not (query.parent / "plan.json").exists()


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--place=O33=a", "operator 'O33' is unknown; did you mean 'O3'?"),
        ("--place=O3=c", "node 'c' is unknown"),
        ("--place=O1=b", "the query allows it on a only"),
        ("--place=O3", "is not OP=NODE"),
        ("--policy=lifo", "--policy lifo: policy 'lifo' is unknown; did you mean 'fifo'? there are edf, edf-e2e, "),
        ("--policy=bts:fi=1ms", "policy 'bts' has no parameter 'fi'; it has phi, hop_phi, k"),
        ("--policy=edf-op:batch=2", "policy 'edf-op' has no parameter 'batch'; it has none"),
        ("--policy=bts:k", "'k' is not PARAMETER=VALUE; write NAME or NAME:PARAMETER=VALUE,..."),
        ("--policy=bts:k=1,k=2", "gives 'k' twice"),
        ("--policy=bts:phi=10", "parameter 'phi': '10' has no unit"),
        ("--policy=adaptive:share=2", "write it as a percentage, like '2 %'"),
        ("--allocator=best", "allocator"),
    ],
)
def test_options_that_cannot_be_used(paper: Paper, option: str, said: str) -> None:
    query, cluster = paper(15)
    done = _coordinator("plan", query, cluster, option, "-o", query.parent / "plan.json")
    assert done.code == 2
    assert said in done.err


def test_a_directory_is_no_place_for_a_plan(paper: Paper) -> None:
    query, cluster = paper(15)
    done = _coordinator("plan", query, cluster, "--model", "paper", "-o", query.parent)
    assert done.code == 2
    assert f"{query.parent}: is a directory; give the path of a file" in done.err


def test_one_of_a_kind_is_not_told_in_the_plural(files: Callable[[str, str], tuple[Path, Path]]) -> None:
    query, cluster = files(
        "shimekiri: 1\nquery: one\nsources: {s: {at: n, type: json, arrival: {burst: 1, period: 1 s}}}\n"
        "operators: {p: {run: pass, in: s, cost: 1 ms}}\noutputs: {o: {from: p, at: n, deadline: 1 s}}\n",
        'shimekiri: 1\nnodes: {n: {address: "127.0.0.1:7700"}}\n',
    )
    said = _coordinator("validate", query, cluster).out
    assert "1 source, 1 operator, 1 output, on 1 node: valid" in said
    plan = query.parent / "plan.json"
    assert _coordinator("plan", query, cluster, "-o", plan, "--best-effort").code == 0
    assert "n (edf): 1 task unit\n" in _coordinator("explain", plan, "-v", "--time-limit", 0).out


def test_ctrl_c_while_a_command_is_being_loaded_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("coordinator.cli.app.run", interrupted)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


def test_plan_and_explain(paper: Paper) -> None:
    query, cluster = paper(20)
    path = query.parent / "deep" / "plan.json"
    done = _coordinator("plan", query, cluster, "--model", "paper", "-o", path)
    assert (done.code, done.err) == (0, "")
    assert "NLR 0" in done.out
    assert "advisory: deadline 3 s, no bound, not guaranteed\n" in done.out
    assert "why not advisory: centre admits tuples of any age" in done.out
    plan = plan_file.read(path)
    assert plan.intact
    told = _coordinator("explain", path, "-v", "--time-limit", 0)
    assert told.code == 0
    assert "control: takes at most 31.2 ms from admission on of its 30 ms, 1.2 ms too late; NOT guaranteed" in told.out
    assert "warning: 300 ms = O2 on a 30 ms + O3 to O21 (17 operators) on b 270 ms" in told.out
    assert "O3 on b: chosen over a: evenest slack (NLR), then least traffic (on a: NLR 1.125, traffic 10)" in told.out
    assert "O2: a -> b" in told.out
    assert "unit 4 (O6 to O5) on b" in told.out


def test_plan_as_json(paper: Paper) -> None:
    query, cluster = paper(20)
    path = query.parent / "plan.json"
    told = json.loads(_coordinator("plan", query, cluster, "-o", path, "--allocator=sqpr", "--json").out)
    assert told["placement"]["O3"] == "a"
    assert told["hash"] == plan_file.read(path).hash


def test_help_has_examples() -> None:
    for command in ("validate", "plan", "explain"):
        done = _coordinator(command, "--help")
        assert done.code == 0
        assert "Example" in done.out


def test_without_the_extra_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None; import coordinator.__main__ as m; m.main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'shimekiri[coordinator]'" in done.stderr


def test_the_command_line_starts_without_the_heavy_libraries() -> None:
    code = (
        "import sys; from coordinator.cli import app; app.register(); "
        "sys.exit(str([m for m in ('ortools', 'pyspark', 'pandas', 'grpc') if m in sys.modules]) != '[]')"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("kind", schema.MODELS)
def test_the_json_schemas_are_current(kind: schema.Kind) -> None:
    """Else: python -m coordinator validate --schema KIND > coordinator/spec/files/schemas/KIND.schema.json."""
    assert schema.path(kind).read_text() == schema.schema_text(kind)


def _saved(paper: Paper, change: Callable[[dict[str, Any]], object]) -> Path:
    from coordinator.model.choices import Choices
    from coordinator.solve import planner

    query, cluster = paper(15)
    plan = planner.make_plan(query, cluster, Choices(model="paper")).to_json()
    change(plan)
    path = query.parent / "plan.json"
    path.write_text(json.dumps(plan))
    return path


@pytest.mark.parametrize(
    ("case", "change", "code", "subject"),
    [
        ("placement", lambda plan: plan["placement"].update(O3="a"), "changed", "hash"),
        ("hash", lambda plan: plan.update(hash="0" * 64), "changed", "hash"),
        ("version", lambda plan: plan.update(shimekiri=2), "other_version", "shimekiri"),
        ("no graph", lambda plan: plan.pop("graph"), "not_a_plan", ""),
        ("no nodes", lambda plan: plan.pop("nodes"), "not_a_plan", ""),
        ("nan", lambda plan: plan["objective"].update(nlr=float("nan")), "not_a_plan", "objective.nlr"),
    ],
)
def test_loading_refuses(
    paper: Paper, case: str, change: Callable[[dict[str, Any]], object], code: str, subject: str
) -> None:
    path = _saved(paper, change)
    with pytest.raises(BadInputError) as raised:
        plan_file.read(path)
    assert [facts(problem) for problem in raised.value.problems] == [("plan.json", 0, code, subject)]
    if code == "changed":  # which is told with the hashes
        assert json.loads(path.read_text())["hash"][:8] in raised.value.problems[0].mistake.text
    else:
        WORDING.check(case, printed(raised.value, path.parent))
    assert mended(raised.value.problems) and _coordinator("explain", path).code == 2


@pytest.mark.parametrize(("text", "code"), [("{", "not_json"), ("[]", "not_a_plan"), (None, "unreadable")])
def test_loading_what_is_no_plan(tmp_path: Path, text: str | None, code: str) -> None:
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadInputError) as raised:
        plan_file.read(path)
    assert [facts(problem) for problem in raised.value.problems] == [("plan.json", 0, code, "")]
    WORDING.check(str(text), printed(raised.value, tmp_path))


def test_the_hash_does_not_depend_on_the_order_of_keys(paper: Paper) -> None:
    path = _saved(paper, lambda plan: None)
    plan = plan_file.read(path)
    path.write_text(json.dumps(plan.to_json(), sort_keys=True, indent=4))
    assert plan_file.read(path) == plan


def test_the_typed_plan_of_a_file_is_written_as_it_was(tmp_path: Path) -> None:
    given = sorted((Path(__file__).parents[3] / "golden" / "corpus" / "plans").glob("*.json"))[0]
    plan_file.write(plan_file.read(given), tmp_path / "plan.json")
    assert (tmp_path / "plan.json").read_bytes() == given.read_bytes()
