"""Damage in a run directory: no changed bit, cut or missing file of a trace passes for a whole one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.errors import BadInputError
from coordinator.fleet.agents import Agents
from coordinator.fleet.collection.collect import collect
from coordinator.report.facts.reader import NoRunError, read_run
from coordinator.report.verdict import verdict
from protos import run_document
from tests.coordinator.report.synthetic import everything, play
from tests.durability.damages import apply, damages

FIGURES = ("outputs", "conservation", "offered")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = play(everything(), 1, tuples=3, mishaps=0.0).save(tmp_path_factory.mktemp("run") / "sound", per_segment=25)
    path = run / "run.json"
    path.write_bytes(run_document.packed(json.loads(path.read_bytes())))
    return run


@pytest.mark.parametrize("sample", [40, pytest.param(None, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", ["run.json", "plan.json"])
def test_any_damage_of_what_the_traces_are_judged_by_is_told_or_changes_nothing(
    sound: Path, tmp_path: Path, name: str, sample: int | None
) -> None:
    before, values = (
        verdict(read_run(sound)).document(),
        run_document.unpacked((sound / "run.json").read_bytes()).values,
    )
    for damage in damages(sound / name, sample):
        run = tmp_path / "run"
        shutil.copytree(sound, run)
        apply(run / name, damage)
        try:
            after = verdict(read_run(run)).document()
        except NoRunError:
            continue
        finally:
            shutil.rmtree(run)
        if name == "run.json" and run_document.unpacked(damage.content or b"").values != values:
            assert any("run.json" in sentence for sentence in after["completeness"]["damage"]), damage.what
        whole = after["completeness"]["complete"] and after["conservation"]["balanced"]
        same = {key: after[key] for key in FIGURES} == {key: before[key] for key in FIGURES}
        assert same or not whole, damage.what


def flipped_key(text: str) -> str:
    return text.replace('"traces"', '"tracer"')


def doubled_line(text: str) -> str:
    return text.replace(' "virtual": true,\n', ' "virtual": true,\n "virtual": true,\n')


def flipped_check(text: str) -> str:
    return text.replace('"check"', '"chesk"')


def other_plan(text: str) -> str:
    hash_ = json.loads(text)["plan_hash"]
    return text.replace(hash_, hash_[::-1])


@pytest.mark.parametrize("change", [flipped_key, doubled_line, flipped_check, other_plan])
def test_a_run_document_that_was_changed_is_told_with_the_mend_by_the_report_and_by_collect(
    sound: Path, tmp_path: Path, change: Callable[[str], str]
) -> None:
    path = shutil.copytree(sound, tmp_path / "run") / "run.json"
    path.write_text(change(path.read_text()))
    try:
        told, *_ = read_run(path.parent).damage
    except NoRunError as error:
        told = str(error)
    assert "run.json is not as it was written: " in told and told.endswith("; put a copy of it in its place")
    with pytest.raises(BadInputError) as raised:
        collect(path.parent, json.loads((path.parent / "plan.json").read_bytes()), Agents({}))
    (problem,) = raised.value.problems
    assert (problem.file, problem.mistake.code) == (str(path), "damaged") and problem.mistake.mend


def test_a_run_document_without_a_check_is_read_where_its_keys_are_known(sound: Path) -> None:
    values = run_document.unpacked((sound / "run.json").read_bytes()).values
    assert run_document.unpacked(json.dumps(values).encode()) == run_document.RunDocument(values)
    assert "'Traces'" in run_document.unpacked(json.dumps(values | {"Traces": []}).encode()).damage


@pytest.mark.parametrize("sample", [6, pytest.param(None, marks=pytest.mark.soak)])
def test_any_damage_of_a_trace_is_told(sound: Path, tmp_path: Path, sample: int | None) -> None:
    before = verdict(read_run(sound)).document()
    assert before["completeness"]["complete"] and before["conservation"]["balanced"]
    files = [path.relative_to(sound) for path in sorted(sound.rglob("*.trace"))]
    assert len(files) >= 4
    for file in files:
        for damage in damages(sound / file, sample):
            run = tmp_path / "run"
            shutil.copytree(sound, run)
            apply(run / file, damage)
            try:
                after = verdict(read_run(run)).document()
            except NoRunError:
                continue
            finally:
                shutil.rmtree(run)
            assert not after["completeness"]["complete"], damage.what
            assert after["completeness"]["damage"], damage.what
            if after["conservation"]["balanced"]:  # a head, or the seal: no record is missing
                assert {key: after[key] for key in FIGURES} == {key: before[key] for key in FIGURES}, damage.what
