"""`make release-check`: what has to hold before a release of the last commit. Writes the wheel and its SBOM to dist/.

Twine and CycloneDX run in an environment of their own, .venv-release. Exit code 1: something does not hold.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from infra.release import fresh_venv, locked_packages
from infra.release.release_steps import Outcome, table
from infra.release.wheel_build import clone_and_build

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".venv-release" / "bin"
PROGRAMS = {"": "node-agent", "coordinator": "coordinator", "report": "coordinator", "vehicles": "sim-vehicles"}
AGENT = ["grpcio", "h2", "hpack", "hyperframe", "protobuf", "psutil", "typing-extensions"]  # the last one is grpcio's
HEADING = re.compile(r"^## (\S+)(?: \((.*)\))?$", re.MULTILINE)
SHOWN = 400  # characters of a failure


class HoldsNotError(AssertionError):
    """A condition of the checklist does not hold; the text says which."""


@dataclass(slots=True)
class Checklist:
    """The steps on one commit. scratch: a folder that goes away; wheel: once it is built."""

    root: Path
    scratch: Path
    outcomes: list[Outcome] = field(default_factory=list)
    wheel: Path | None = None

    def run(self) -> bool:
        """All steps, in order; those that need a wheel are left out where none is built. Whether all passed."""
        self.step("clean tree", self.clean_tree)
        self.step("version and CHANGELOG", lambda: agreed_version(self.root))
        if self.step("wheel, built twice", self.same_wheel_twice):
            self.step("twine check --strict", self.twine)
            for extra in PROGRAMS:
                self.step(f"install [{extra}]" if extra else "install, agent only", lambda: self.install(extra))  # noqa: B023
            self.step("SBOM", self.sbom)
        return all(each.passed for each in self.outcomes)

    def step(self, name: str, check: Callable[[], str]) -> bool:
        """Runs one; what it returns is worth a look."""
        began = time.monotonic()
        try:
            passed, note = True, check()
        except subprocess.CalledProcessError as error:
            passed, note = False, " ".join(f"{error.stdout or ''} {error.stderr or ''}".split())[-SHOWN:]
        except (HoldsNotError, OSError, KeyError, ValueError) as error:
            passed, note = False, f"{type(error).__name__}: {error}"
        self.outcomes.append(Outcome("release", name, passed, time.monotonic() - began, note))
        print(f"{name}: {'passed' if passed else 'FAILED'} {note}", file=sys.stderr, flush=True)
        return passed

    def clean_tree(self) -> str:
        """Nothing that is not committed: the clones would lack it."""
        changed = self._said("git", "status", "--porcelain").splitlines()
        _holds(not changed, f"{len(changed)} files are not committed: {', '.join(changed[:3])}")
        return self._said("git", "log", "-1", "--format=%h %cs").strip()

    def same_wheel_twice(self) -> str:
        """Two clones, two builds, the same bytes."""
        first, second = (clone_and_build(self.root, self.scratch / name) for name in ("first", "other/second"))
        digests = [hashlib.sha256(each.read_bytes()).hexdigest() for each in (first, second)]
        _holds(digests[0] == digests[1], f"{first.name} has other bytes each time")
        self.wheel = self._dist(first.name)
        self.wheel.write_bytes(first.read_bytes())
        return f"{first.name}, {first.stat().st_size / 1e6:.1f} MB, sha256 {digests[0][:16]}"

    def twine(self) -> str:
        """The description renders, the metadata are complete."""
        self._said(TOOLS / "twine", "check", "--strict", self._wheel())
        return "metadata and description"

    def install(self, extra: str) -> str:
        """In an environment of its own; the agent takes its own packages alone."""
        found = fresh_venv.install(self._wheel(), extra, PROGRAMS[extra], self.scratch / f"venv-{extra}")
        if not extra:
            names = [name.replace("_", "-") for name in found.dependencies]
            _holds(set(names) <= set(AGENT), f"an agent takes {', '.join(names)}")
            return f"{found}: {', '.join(names)}"
        return str(found)

    def sbom(self) -> str:
        """CycloneDX, of what the lock has for a release with all extras."""
        lock, made = self.scratch / "released.txt", self._dist(f"{self._wheel().stem}.cdx.json")
        lock.write_text(locked_packages.released_lock(self.root), encoding="utf-8")
        self._said(
            TOOLS / "cyclonedx-py", "requirements", lock, "--pyproject", self.root / "pyproject.toml",
            "--output-reproducible", "--of", "JSON", "-o", made,
        )  # fmt: skip
        document = json.loads(made.read_text(encoding="utf-8"))
        listed = {each["name"].lower() for each in document["components"]}
        lacking = locked_packages.demanded(self.root) - {name.replace("_", "-") for name in listed}
        _holds(not lacking, f"the SBOM lacks {', '.join(sorted(lacking))}")
        return f"{made.name}, CycloneDX {document['specVersion']}, {len(listed)} components"

    def _wheel(self) -> Path:
        assert self.wheel is not None
        return self.wheel

    def _dist(self, name: str) -> Path:
        (self.root / "dist").mkdir(exist_ok=True)
        return self.root / "dist" / name

    def _said(self, *words: object) -> str:
        return subprocess.run(
            [str(word) for word in words], cwd=self.root, capture_output=True, text=True, check=True
        ).stdout  # fmt: skip


def agreed_version(root: Path) -> str:
    """The version of pyproject.toml, which the newest heading of CHANGELOG.md has as well. Raises HoldsNotError."""
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    newest = HEADING.search((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    _holds(newest is not None and newest[1] == version, f"{version} is not the newest heading of CHANGELOG.md")
    return f"{version} ({newest[2]})" if newest and newest[2] else str(version)


def _holds(condition: bool, otherwise: str) -> None:
    if not condition:
        raise HoldsNotError(otherwise)


def main() -> int:
    """0: all holds; 1: something does not."""
    with tempfile.TemporaryDirectory(prefix="shimekiri-release-") as folder:
        checklist = Checklist(ROOT, Path(folder))
        passed = checklist.run()
    print(table(checklist.outcomes))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
