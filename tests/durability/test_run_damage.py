"""Damage in a run directory: no changed bit, cut or missing file of a trace passes for a whole one."""

import shutil
from pathlib import Path

import pytest

from coordinator.report.reader import NoRunError, read_run
from coordinator.report.verdict import verdict
from tests.coordinator.report.synthetic import everything, play
from tests.durability.damages import apply, damages

FIGURES = ("outputs", "conservation", "offered")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(everything(), 1, tuples=3, mishaps=0.0).save(tmp_path_factory.mktemp("run") / "sound", per_segment=25)


@pytest.mark.parametrize("sample", [40, pytest.param(None, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", ["run.json", "plan.json"])
def test_any_damage_of_what_the_traces_are_judged_by_is_told_or_changes_nothing(
    sound: Path, tmp_path: Path, name: str, sample: int | None
) -> None:
    before = verdict(read_run(sound))
    for damage in damages(sound / name, sample):
        run = tmp_path / "run"
        shutil.copytree(sound, run)
        apply(run / name, damage)
        try:
            after = verdict(read_run(run))
        except NoRunError:
            continue
        finally:
            shutil.rmtree(run)
        whole = after["completeness"]["complete"] and after["conservation"]["balanced"]
        same = {key: after[key] for key in FIGURES} == {key: before[key] for key in FIGURES}
        assert same or not whole, damage.what


@pytest.mark.parametrize("sample", [6, pytest.param(None, marks=pytest.mark.soak)])
def test_any_damage_of_a_trace_is_told(sound: Path, tmp_path: Path, sample: int | None) -> None:
    before = verdict(read_run(sound))
    assert before["completeness"]["complete"] and before["conservation"]["balanced"]
    files = [path.relative_to(sound) for path in sorted(sound.rglob("*.trace"))]
    assert len(files) >= 4
    for file in files:
        for damage in damages(sound / file, sample):
            run = tmp_path / "run"
            shutil.copytree(sound, run)
            apply(run / file, damage)
            try:
                after = verdict(read_run(run))
            except NoRunError:
                continue
            finally:
                shutil.rmtree(run)
            assert not after["completeness"]["complete"], damage.what
            assert after["completeness"]["damage"], damage.what
            if after["conservation"]["balanced"]:  # a head, or the seal: no record is missing
                assert {key: after[key] for key in FIGURES} == {key: before[key] for key in FIGURES}, damage.what
