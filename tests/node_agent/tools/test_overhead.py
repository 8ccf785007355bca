"""`node-agent charges`: what is read from the loop's own records, the line for the cluster file, bad arguments."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from node_agent.tools import overhead
from node_agent.tools.overhead import FED, UNITS, Measured
from protos import records

ROOT = Path(__file__).parents[3]


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "node_agent", "charges", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def ran(start_ns: int, end_ns: int, after_ns: int, unit: int = 1) -> records.Record:
    """An instance; after_ns: from the end of the one before, or from when it was chosen, to its start."""
    return records.Ran.make(unit=unit, start_ns=start_ns, end_ns=end_ns, decision_ns=after_ns)


def admitted(at_ns: int, source: int = FED) -> records.Record:
    return records.Admitted.make(source_id=source, at_ns=at_ns)


def gaps(*facts: records.Record) -> tuple[list[int], list[tuple[int, int]]]:
    bare: list[int] = []
    filled: list[tuple[int, int]] = []
    overhead._read(iter(facts), bare, filled)
    return bare, filled


def test_a_stretch_without_arrivals_is_a_decision() -> None:
    assert gaps(ran(0, 100, 5), ran(110, 210, 10), ran(222, 322, 12)) == ([10, 12], [])


def test_what_a_drain_brings_is_counted_to_the_stretch_after_the_instance_that_it_ended() -> None:
    """A drain at an instance's end admits before the instance's own record is written."""
    assert gaps(ran(0, 100, 5), admitted(215), admitted(215), ran(110, 210, 10), ran(250, 350, 40)) == ([10], [(40, 2)])


def test_waits_tuples_that_found_the_node_idle_and_other_sources_are_not_counted() -> None:
    assert gaps(ran(0, 100, 5), ran(500, 600, 3)) == ([], [])  # it was chosen 3 before its start, not at 100
    assert gaps(ran(0, 100, 5), admitted(490), ran(500, 600, 3), ran(610, 700, 10)) == ([10], [])
    assert gaps(admitted(105, FED + 1), ran(0, 100, 5), ran(107, 200, 7)) == ([7], [])
    assert gaps(ran(0, 100, 5, UNITS + 1), ran(107, 200, 7)) == ([], [])  # after one that uses no time


def test_a_charge_is_the_p99_and_a_quarter_more_in_whole_microseconds() -> None:
    found = Measured.of([1000] * 98 + [10_000, 90_000])
    assert found == (1000, 10_000, 90_000, 100) and found.charge_us == 13
    assert Measured.of([10]).charge_us == 1


def test_it_measures_here_and_prints_the_line() -> None:
    for seconds in ("0.6", "3", "20"):  # a busy machine may leave the other process no time
        done = run("--seconds", seconds, "--json")
        if "no tuple came" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    for name in ("decision", "drain", "side"):
        assert told[name]["samples"] > 0 and told[name]["median_ns"] <= told[name]["p99_ns"] <= told[name]["worst_ns"]
        assert told[name]["charge_us"] * 1000 >= told[name]["p99_ns"]
    assert re.fullmatch(r"charges: \{decision: \d+ us, drain: \d+ us, side: \d+ us\}", told["yaml"])
    assert told["payload_bytes"] > 100


def test_the_lines_for_people() -> None:
    each = Measured(1_000, 2_000, 3_000, 7)
    lines = overhead.report_text(overhead.Charges(each, each, each, False, 198, ("noise",))).splitlines()
    assert lines[-1] == "charges: {decision: 3 us, drain: 3 us, side: 3 us}"
    assert "warning: noise" in lines and "2.0" in lines[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--seconds", "0"), "between 0.2 and 600"),
        (("--burst", "0"), "between 1 and 1000"),
        (("--seconds", "nan"), "between 0.2 and 600"),
        (("--type", "vehicles"), "give a typical value with --payload"),
        (("--payload", "none.json"), "No such file"),
        (("--payload", __file__), "--payload"),
        (("--type", "none", "--payload", "pyproject.toml"), "--payload"),
    ],
)
def test_bad_arguments(arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_an_unknown_type_is_told(tmp_path: Path) -> None:
    payload = tmp_path / "payload.json"
    payload.write_text("{}")
    done = run("--type", "t.none", "--payload", str(payload))
    assert done.returncode == 2 and "t.none" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cpu", "4095"), "--cpu 4095: there is no such core here; there are "),
        (
            ("--payload", "nowhere.json"),
            "--payload nowhere.json: cannot be read (No such file or directory); give",
        ),
        (("--payload", "README.md"), "--payload README.md: is not JSON ("),
    ],
)
def test_arguments_that_cannot_be_are_refused_before_anything_is_measured(
    arguments: tuple[str, ...], said: str
) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert said in done.stderr and "Traceback" not in done.stderr
