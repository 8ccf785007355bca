"""The command blocks of README and docs do what they say: each is run as it stands, in the files that the page shows.

The blocks of a page, and of a section of the README, run in one bash, in the order in which they stand there. Where
that is allowed, it has a network of its own, since the ports in the examples may be taken. A comment that names an exit
code is believed: `# exit code 3`; one that says `exit code 1 where ...` may end with 0 as well.

`make test` runs the README and the tutorial, `make soak` the other pages as well.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
NAMES = ("tutorial.md", "how_to/robot_over_mqtt.md", "how_to/own_nodes.md", "explanation/demo.md")
PAGES = tuple(ROOT / "docs" / name for name in NAMES)
OF_BROKER = "robot_over_mqtt.md"
BY_SOAK = ("own_nodes.md", "demo.md", OF_BROKER)
INSTALLED = "/path/to/shimekiri"  # what a reader puts the place of the clone for
OF_CI = ("make demo", "make test")  # the first block: tests cannot run themselves, and .ci/run calls both
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w.]+\.(?:py|yaml))`")
EXIT = re.compile(r"exit code (\d)( where)?")
SECONDS = 240


@dataclass(frozen=True)
class Block:
    """A fenced block; `part`: the page or the README's section that runs as one; `file`: the name that the paragraph
    before it gives it, if it does."""

    part: str
    language: str
    text: str
    file: str | None
    line: int


def blocks() -> list[Block]:
    """All of the README and of the pages, in order."""
    return [block for page in (README, *PAGES) for block in _blocks(page)]


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for fence in FENCE.finditer(text):
        before = text[: fence.start()]
        sections = ["", *re.findall(r"^## (.*)$", before, re.MULTILINE)]
        part = sections[-1] if page == README else page.name
        named = FILE.findall(before.rstrip().rpartition("\n\n")[2].rpartition("```")[2])
        yield Block(part, fence[1], fence[2], named[-1] if named else None, before.count("\n") + 1)


def commands(block: Block) -> list[str]:
    """One per line; a line that ends with a backslash goes on."""
    return [line for line in block.text.replace("\\\n", " ").splitlines() if line.strip()]


def script(part: list[Block], clone: Path) -> str:
    """Writes down each line before it runs, and ends at the first one whose exit code is another than it says."""
    lines = ["set -u", 'fail() { echo "line $1: exit code $2: $3" >&2; exit 97; }']
    for block in part:
        if block.file is not None and block.language in {"python", "yaml"}:
            name, text = shlex.quote(block.file), shlex.quote(block.text)
            lines.append(f"printf %s {text} > {name}")
        elif block.language == "sh":
            for command in commands(block):
                said = EXIT.search(command.partition("#")[2])
                fine = {"0"} if said is None else {said[1], "0"} if said[2] else {said[1]}
                shown, pattern = shlex.quote(command), "|".join(sorted(fine))
                lines.append(command.replace(INSTALLED, str(clone)))
                lines.append(f"code=$?; case $code in {pattern}) ;; *) fail {block.line} $code {shown};; esac")
    return "\n".join(lines) + "\n"


def network() -> list[str]:
    """The command before a command that gives it a loopback device of its own; empty where that is not allowed. An
    ordinary user is root for that alone: a broker that took itself for root would want to become another user."""
    root, back = os.geteuid() == 0, f"unshare --user --map-user={os.geteuid()} --map-group={os.getegid()} "
    own = ["unshare", "--net", *(() if root else ("--map-root-user",))]
    start = [*own, "sh", "-c", f'ip link set lo up && exec {"" if root else back}"$@"', "sh"]
    try:
        allowed = subprocess.run([*start, "true"], capture_output=True, timeout=30, check=False).returncode == 0
    except OSError:
        allowed = False
    return start if allowed else []


PARTS = list(dict.fromkeys(block.part for block in blocks() if block.language == "sh" and block.part))


def test_the_first_block_is_what_decides_whether_a_change_lands() -> None:
    first = next(block for block in blocks() if block.language == "sh")
    assert not first.part
    asked = [command.partition("#")[0].strip() for command in commands(first)]
    assert sorted(asked) == sorted(OF_CI)
    run = (ROOT / ".ci" / "run").read_text()
    assert all(re.search(rf"^as_user {command.replace(' ', ' -C .* ')}$", run, re.MULTILINE) for command in asked)


def test_all_blocks_are_known() -> None:
    assert {block.language for block in blocks()} <= {"sh", "python", "yaml"}
    shown = [block for block in blocks() if block.language == "python"]
    assert [block.line for block in shown if block.file is None] == []


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The repository as a reader has it, but for its runs, which are the reader's own."""
    folder = tmp_path / "shimekiri"
    folder.mkdir()
    for each in ROOT.iterdir():
        if each.name not in {"runs", ".git", ".venv", "infra"}:
            (folder / each.name).symlink_to(each)
    shutil.copytree(ROOT / "infra", folder / "infra")  # `run` writes operators.json beside an example's query
    (folder / ".venv").symlink_to(Path(sys.executable).parents[1])  # its interpreter knows its packages by its own path
    return folder


def _marks(part: str) -> list[pytest.MarkDecorator]:
    missing = part == OF_BROKER and shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin") is None
    skipped = [pytest.mark.skip(reason="no mosquitto here (Debian: mosquitto)")] if missing else []
    return skipped + ([pytest.mark.soak] if part in BY_SOAK else [])


@pytest.mark.parametrize("part", [pytest.param(part, marks=_marks(part)) for part in PARTS])
def test_the_commands_run_as_they_stand_there(part: str, clone: Path, tmp_path: Path) -> None:
    mine = [block for block in blocks() if block.part == part]
    here = tmp_path / "own"
    here.mkdir()
    of_clone = "$PWD/.venv" in "".join(block.text for block in mine)
    folder = clone if of_clone else here
    text = script(mine, clone)
    path = "/usr/sbin:/usr/bin:/bin"
    if "export PATH" not in text:  # done on an earlier page
        path = f"{clone}/.venv/bin:{path}"
    environment = {"PATH": path, "HOME": str(tmp_path)}
    try:
        done = subprocess.run(
            [*network(), "bash", "-c", text], cwd=folder, env=environment,
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    finally:
        _stop_agents(tmp_path)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


def _stop_agents(folder: Path) -> None:
    """Those that a failed block has left."""
    for path in folder.rglob("addresses.json"):
        if any("pid" in node for node in json.loads(path.read_bytes()).get("nodes", {}).values()):
            down = [sys.executable, "-m", "coordinator", "down", "--addresses", str(path)]
            subprocess.run(down, capture_output=True, timeout=60, check=False)
