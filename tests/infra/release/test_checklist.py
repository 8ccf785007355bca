"""The checklist of a release: its parts, without the wheel and the environments that `make release-check` makes."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from infra.release import fresh_venv, locked_packages
from infra.release.checklist import Checklist, HoldsNotError, agreed_version

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", each)[0].lower() for each in requirements}


def test_extras_divide_what_plans_from_what_needs_spark() -> None:
    extras = PROJECT["optional-dependencies"]
    heavy = {"pyspark", "pandas", "pyarrow"}
    assert names(PROJECT["dependencies"]) == {"grpcio", "h2", "hpack", "hyperframe", "protobuf", "psutil"}
    assert not names(extras["coordinator"]) & heavy
    assert extras["report"][0] == "shimekiri[coordinator]" and names(extras["report"]) == heavy | {"shimekiri"}


def test_the_metadata_are_whole() -> None:
    assert PROJECT["license"] == "Apache-2.0" and PROJECT["license-files"] == ["LICENSE"]
    assert PROJECT["readme"] == "README.md" and PROJECT["description"] and PROJECT["keywords"]
    told = PROJECT["classifiers"]
    assert "Typing :: Typed" in told and not [each for each in told if each.startswith("License ::")]
    for package in ("protos", "node_agent", "coordinator", "sim_vehicles"):
        assert (ROOT / package / "py.typed").is_file()


def test_the_changelog_begins_with_the_version(tmp_path: Path) -> None:
    assert agreed_version(ROOT).split()[0] == PROJECT["version"]
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.9\n\n## 2.0\n")
    with pytest.raises(HoldsNotError):
        agreed_version(tmp_path)


def test_the_released_part_of_the_lock_has_all_that_users_install_and_nothing_of_development() -> None:
    lock = locked_packages.released_lock(ROOT)
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE))
    assert {"grpcio", "ortools", "pyspark", "pyarrow", "mcap", "paho-mqtt", "py4j"} <= pinned.keys()
    assert not {"pytest", "ruff", "mypy", "duckdb", "ansible-core", "setuptools"} & pinned.keys()
    assert pinned["grpcio"] == version("grpcio")
    assert all(f"{name}=={number}" in lock for name, number in pinned.items())
    assert lock.count("--hash=sha256:") >= len(pinned)


def test_a_step_that_fails_is_shown_and_the_others_go_on(tmp_path: Path) -> None:
    checklist = Checklist(ROOT, tmp_path)

    def fails() -> str:
        raise HoldsNotError("because")

    assert not checklist.step("one", fails) and checklist.step("two", lambda: "fine")
    assert [(each.step, each.passed) for each in checklist.outcomes] == [("one", False), ("two", True)]
    assert "because" in checklist.outcomes[0].note


def test_the_size_counts_each_file_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(bytes(2_000_000))
    (tmp_path / "c").symlink_to(tmp_path / "a")
    assert fresh_venv.size_mb(tmp_path) == 2.0
