"""`coordinator init`: what it writes is guaranteed and runs by the commands that it prints; nothing is written over."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest

from coordinator.__main__ import main
from coordinator.cli.commands import init
from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.spec.files import schema

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
NAMES = {"query.yaml", "cluster.yaml", "operators.py", "operators.json", "feed.jsonl"}


def _run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["coordinator", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A directory that init has made."""
    folder = tmp_path / "some where" / "pumps"
    assert _run(["init", str(folder)], monkeypatch) == 0
    capsys.readouterr()
    return folder


def test_all_files_are_there_and_name_their_schemas(written: Path) -> None:
    assert {path.name for path in written.iterdir()} == NAMES == set(init.FILES)
    for kind in ("query", "cluster"):
        first = (written / f"{kind}.yaml").read_text().splitlines()[0]
        url = first.removeprefix("# yaml-language-server: $schema=")
        assert url != first and " " not in url
        named = Path(unquote(urlparse(url).path))
        assert named.read_text() == schema.schema_text("query" if kind == "query" else "cluster")
    assert all(isinstance(json.loads(line), dict) for line in (written / "feed.jsonl").read_text().splitlines())
    compile((written / "operators.py").read_text(), "operators.py", "exec")


def test_its_plan_is_guaranteed_on_both_nodes(written: Path) -> None:
    plan = planner.make_plan(written / "query.yaml", written / "cluster.yaml", Choices(model="sound"))
    assert plan.guarantee["verdict"].guaranteed is True
    assert set(plan.placement.values()) == {"field", "desk"}


SENT = re.compile(r"(\d+)(?: tuples)? sent, (\d+) admitted")
OPTION = re.compile(r"^( +)# (\w+: .*)$", re.MULTILINE)


def test_what_stands_there_as_a_comment_may_stand_there(written: Path) -> None:
    for name in ("query.yaml", "cluster.yaml"):
        text = (written / name).read_text()
        assert len(OPTION.findall(text)) >= 4
        (written / name).write_text(OPTION.sub(r"\1\2", text))
    planner.make_plan(written / "query.yaml", written / "cluster.yaml", Choices(model="paper"))


def _listed(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "node_agent", *init.AGAIN.partition(" > ")[0].split()[1:]]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    listed = json.loads(done.stdout)
    assert isinstance(listed, dict)
    return listed


def test_operators_json_is_what_an_agent_says_of_operators_py(written: Path) -> None:
    """Beside what other packages bring to the environment of these tests."""
    listed, given = _listed(written), json.loads((written / "operators.json").read_text())
    brought = {each.name for each in entry_points(group="shimekiri.operators")}
    codecs = {each.name for each in entry_points(group="shimekiri.codecs")}
    assert {name: one for name, one in listed["operators"].items() if name not in brought} == given["operators"]
    assert [name for name in listed["codecs"] if name not in codecs] == given["codecs"]
    assert {name: one for name, one in listed["fields"].items() if name not in codecs} == given["fields"]
    assert set(listed) - {"unavailable"} == set(given)
    assert {"my.calibrate", "my.judge"} < set(given["operators"])


def test_nothing_is_written_over(
    written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (written / "query.yaml").unlink()
    (written / "operators.py").write_text("mine")
    (written / "cluster.yaml").write_text("mine as well")
    assert _run(["init", str(written)], monkeypatch) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{written / 'cluster.yaml'}: is there already; ")
    assert "--force" in said and len(said.splitlines()) == 1
    assert (written / "operators.py").read_text() == "mine"
    assert not (written / "query.yaml").exists()
    assert _run(["init", str(written), "--force"], monkeypatch) == 0
    assert (written / "operators.py").read_text() == init.template("operators.py")


def test_here_only_where_nothing_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    assert _run(["init"], monkeypatch) == 2
    assert capsys.readouterr().err.startswith(f"{tmp_path}: is not empty; name a directory")
    (tmp_path / "notes.txt").rename(tmp_path / ".notes")
    assert _run(["init"], monkeypatch) == 0
    assert set(init.FILES) < {path.name for path in tmp_path.iterdir()}
    assert "\n  cd " not in capsys.readouterr().out


def test_what_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert _run(["init", str(tmp_path / "file")], monkeypatch) == 2
    assert _run(["init", str(tmp_path / "file" / "below")], monkeypatch) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all("cannot be written: " in line and "name another directory" in line for line in lines)


def test_a_wheel_has_the_templates_and_the_schemas() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert any(fnmatch("coordinator.cli.templates", pattern) for pattern in settings["packages"]["find"]["include"])
    patterns = settings["package-data"]["*"]
    files = [path for folder in (init.TEMPLATES, schema.FOLDER) for path in folder.iterdir() if path.is_file()]
    assert len(files) == len(NAMES) + len(schema.MODELS)
    assert [path.name for path in files if not any(fnmatch(path.name, pattern) for pattern in patterns)] == []


def test_the_printed_commands_run_as_printed(tmp_path: Path) -> None:
    """In the order in which they stand there, in a shell that knows nothing of this environment."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    made = subprocess.run(
        [str(Path(sys.executable).with_name("coordinator")), "init", "my pumps"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    tried, steps, again = (
        [line.strip() for line in part.splitlines() if line.startswith("  ")]
        for part in re.split("^(?:or step|after a)", made.stdout, flags=re.MULTILINE)
    )
    assert again == [init.AGAIN] and len(tried) == 3 and tried[-1] == init.TRY and len(steps) == len(init.STEPS)
    shell = ["bash", "-e", "-c", "\n".join([*tried, *again, *steps])]
    try:
        done = subprocess.run(
            shell, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
    finally:
        left = subprocess.run(
            ["bash", "-c", "\n".join([*tried[:2], steps[-1]])],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not running" in left.stdout and "stopped" not in left.stdout
    assert "1 of 1 output guaranteed" in done.stdout
    tuples = len((tmp_path / "my pumps" / "feed.jsonl").read_text().splitlines())
    sent = SENT.findall(done.stderr)  # of `run`, then a line a second of `feed`, the last one of all
    for folder, (all_, admitted) in zip(("runs", "steps"), (sent[0], sent[-1]), strict=True):
        (report,) = (tmp_path / "my pumps" / folder).glob("*/report.json")
        verdict = json.loads(report.read_text())
        assert verdict["completeness"]["complete"] and verdict["conservation"]["balanced"]
        assert int(all_) == tuples  # a machine that is held up sends some too late
        assert verdict["conservation"]["admitted"] - verdict["conservation"]["windows"] == int(admitted)
    assert '{"value": {"readings": ' in done.stdout and '\nverdict: {"readings": ' in done.stdout
