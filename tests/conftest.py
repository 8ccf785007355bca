"""For all tests: a busy machine fails none of them, the same seeds are drawn in every run, the longest begin first.

`--seed random` draws others, in properties (hypothesis) as well: so does `make soak`. A failing test prints its seed.
"""

import gc
import importlib
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

import pytest
from hypothesis import settings

from tests import sentences
from tests.extension_modules import stale
from tests.seeds import MOVED

# `make test` draws a quarter of what `make soak` does: see `tests.sampling.examples`
settings.register_profile("repeatable", max_examples=25, deadline=None, derandomize=True, print_blob=True)
settings.register_profile("open", deadline=None, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", default="1", metavar="N|random", help="what random tests draw from (1)")


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported: properties take their settings over as they are defined."""
    if old := stale():
        raise pytest.UsageError(
            f"{old[0]} is older than its source: `make compiled` makes it anew, `make pure` removes it"
        )
    asked = str(config.getoption("--seed"))
    settings.load_profile("open" if asked == "random" else "repeatable")
    if asked != "random":
        os.environ[MOVED] = str(int(asked) - 1)
    elif "PYTEST_XDIST_WORKER" not in os.environ:  # a worker has that of the process that started it
        os.environ[MOVED] = str(SystemRandom().randrange(1 << 30))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Of a test that draws by itself."""
    asked = str(request.config.getoption("--seed"))
    drawn = SystemRandom().randrange(1 << 32) if asked == "random" else int(asked)
    print(f"--seed {drawn}")
    return drawn


@pytest.fixture(scope="module", autouse=True)
def no_stale_sentences(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where a file's tests all ran, each entry of the snapshots that they compare was compared."""
    sentences.begin()
    yield
    config, session = request.config, request.session
    some = config.option.keyword or getattr(config.option, "lf", False) or any("::" in given for given in config.args)
    if not (some or session.testsfailed or session.shouldstop or session.shouldfail):
        assert sentences.stale() == []


def pytest_collection(session: pytest.Session) -> None:
    """In a fresh clone pytest compiles each test module. Each process of pytest-xdist begins with others of them, so
    that nearly all are compiled once. What cannot be imported is imported again by pytest, which reports it."""
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if count == 1:
        return
    root, given = session.config.rootpath, [Path(each.partition("::")[0]).resolve() for each in session.config.args]
    files = sorted(path for one in given for path in (one.rglob("test_*.py") if one.is_dir() else [one]))
    first = len(files) * int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw")) // count
    for path in files[first:] + files[:first]:
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a test that is marked `long` come first: else the last of them would run alone at the end."""
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish() -> None:
    """Five thousand tests stay alive until the end: to look through them again and again is a fifth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many tests were skipped, by reason; and how tests with seeds in their names are run again."""
    if terminalreporter.stats.get("failed") and (moved := int(os.environ[MOVED])):
        terminalreporter.write_line(f"the seeds in names of tests are those of --seed {moved + 1}")
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", ()))
    if reasons:
        terminalreporter.section(f"skipped: {reasons.total()}")
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count:5}  {reason}")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """A skip's report has (file, line, reason)."""
    told = report.longrepr
    return told[2].removeprefix("Skipped: ") if isinstance(told, tuple) else str(told)
