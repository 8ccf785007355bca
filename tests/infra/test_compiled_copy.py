"""The compiled hot path against the same files as Python: its own tests, and every record of the same journals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from infra.bench.compiled.compiled_copy import QUICK, ROOT, compiled_copy, run, why_not
from tests.extension_modules import stale

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]
SEEDS = [str(seed) for seed in (3, 7, 11)]
TESTS = (  # those that take seconds; `make check-both` runs all
    "tests/node_agent/core/engine", "tests/node_agent/core/test_queues.py", "tests/node_agent/host/test_trace_ring.py",
    "tests/node_agent/core/policies/test_policy_slack.py", "tests/node_agent/core/policies/test_policy_excess.py",
    "tests/node_agent/runtime/test_executor.py",
)  # fmt: skip


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_copy(tmp_path_factory.mktemp("compiled") / "copy", QUICK)


def digests(words: list[str], folder: Path) -> dict[str, Any]:
    done = run(folder, words)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_the_same_journals_give_the_same_records(copy: Path) -> None:
    words = ["-m", "tests.simulation.digests", *SEEDS]
    compiled, python = digests(words, copy), digests(words, ROOT)
    if python["compiled"]:
        pytest.skip("the hot path is compiled in place: `make pure` first")
    assert compiled["compiled"] and compiled["digests"] == python["digests"]


def test_tests_of_the_core_hold_for_what_is_compiled(copy: Path) -> None:
    done = run(copy, ["-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *TESTS])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


def test_what_is_compiled_and_older_than_its_source_is_refused(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not stale(copy)
    source = copy / "node_agent/core/job_queues.py"
    before = source.stat().st_mtime
    os.utime(source, (before, time.time() + 3600))
    assert [path.name.partition(".")[0] for path in stale(copy)] == ["job_queues"]
    done = run(copy, ["-m", "pytest", "-q", "tests/node_agent/core/test_queues.py"])
    assert done.returncode != 0 and "make compiled" in done.stderr + done.stdout
    os.utime(source, (before, before))


def test_without_cython_the_product_installs_as_python(tmp_path: Path) -> None:
    """Its build says so, once."""
    program = "import sys; sys.modules['Cython'] = None\nexec(open('setup.py').read())"
    environment = {key: value for key, value in os.environ.items() if key != "SHIMEKIRI_COMPILED"}
    for wanted, code in (({}, 0), ({"SHIMEKIRI_COMPILED": "1"}, 1)):
        words = [sys.executable, "-c", program, "--name"]
        done = subprocess.run(words, cwd=ROOT, env=environment | wanted, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert done.stderr.count("plain Python") == 1 - code


def test_without_a_compiler_the_product_builds_as_python(copy: Path, tmp_path: Path) -> None:
    words = [sys.executable, "setup.py", "-q", "build", "--build-base", str(tmp_path / "build")]
    environment = {key: value for key, value in os.environ.items() if key != "SHIMEKIRI_COMPILED"}
    for wanted, code in (({}, 0), ({"SHIMEKIRI_COMPILED": "1"}, 1)):
        given = environment | {"CC": "/no/such/compiler"} | wanted
        done = subprocess.run(words, cwd=copy, env=given, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
    assert list(tmp_path.rglob("node_agent/core/model.py")) and not list(tmp_path.rglob("*.so"))


def test_where_one_module_cannot_be_compiled_none_is(copy: Path, tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\ncase "$*" in *ready_queue.c*) exit 1;; esac\nexec cc "$@"\n')
    compiler.chmod(0o755)
    words = [sys.executable, "setup.py", "-q", "build", "--build-base", str(tmp_path / "build")]
    environment = {key: value for key, value in os.environ.items() if key != "SHIMEKIRI_COMPILED"}
    given = environment | {"CC": str(compiler)} | QUICK
    done = subprocess.run(words, cwd=copy, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "plain Python" in done.stderr, done.stderr
    assert not list(tmp_path.rglob("*.so"))
