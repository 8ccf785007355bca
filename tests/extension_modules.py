"""Whether the hot path is compiled in place, and whether what is compiled is of today's source."""

from pathlib import Path

import pytest

from node_agent.core import job_queues

ROOT = Path(__file__).parents[1]


def stale(root: Path = ROOT) -> list[Path]:
    """Extension modules of a copy of the repository that are older than the files they are made of."""
    found = list((root / "node_agent").rglob("*.so"))
    built = {path.with_name(path.name.partition(".")[0]) for path in found}
    declared = {path.with_suffix("") for path in (root / "node_agent").rglob("*.pxd")}
    if found and built != declared:
        return sorted(built ^ declared)
    return [path for path in found if any(path.stat().st_mtime < each.stat().st_mtime for each in _sources(path))]


def _sources(extension: Path) -> list[Path]:
    stem = extension.name.partition(".")[0]
    return [path for suffix in (".py", ".pxd") if (path := extension.with_name(stem + suffix)).exists()]


def only_python() -> None:
    """Skips a test that replaces methods or looks at how they are made, which compiled classes do not allow."""
    if not job_queues.__file__.endswith(".py"):
        pytest.skip("the classes are compiled")
