"""The container files: what each stage copies is there and not ignored, nothing runs as root, health is asked for. They
are built where podman or docker can build."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "infra" / "containers").glob("*.Containerfile"))
INSTRUCTIONS = {
    "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "RUN", "STOPSIGNAL", "USER", "VOLUME",
    "WORKDIR",
}  # fmt: skip
Instruction = tuple[str, str]
each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def instructions(file: Path) -> list[Instruction]:
    """Keyword and arguments, without comments and with continued lines as one."""
    lines = [line for line in file.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines)).splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined)]


def last_stage(file: Path) -> list[Instruction]:
    found = instructions(file)
    begins = max(number for number, (word, _) in enumerate(found) if word == "FROM")
    return found[begins:]


def test_there_are_two() -> None:
    assert [file.stem for file in FILES] == ["agent", "coordinator"]


@each_file
def test_the_instructions_are_known_and_stages_begin_with_a_named_python(file: Path) -> None:
    found = instructions(file)
    assert {word for word, _ in found} <= INSTRUCTIONS
    assert [rest for word, rest in found if word == "FROM"] == ["python:3.11-slim AS build", "python:3.11-slim"]
    for word, rest in found:
        if rest.startswith("["):
            assert word in {"CMD", "ENTRYPOINT"} and all(isinstance(each, str) for each in json.loads(rest))


@each_file
def test_what_is_copied_is_there_and_not_ignored(file: Path) -> None:
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    sources = [rest.split() for word, rest in instructions(file) if word == "COPY"]
    copied = [name for words in sources if not words[0].startswith("--from=") for name in words[:-1]]
    assert {"pyproject.toml", "README.md", "LICENSE", "protos", "node_agent", "coordinator", "sim_vehicles"} == set(
        copied
    )
    for name in copied:
        assert (ROOT / name).exists()
        ignored = False
        for pattern in patterns:
            if fnmatch(name, pattern.lstrip("!")):
                ignored = pattern[0] != "!"
        assert not ignored, name
    assert [words[0] for words in sources if words[0].startswith("--from=")] == ["--from=build"]


@each_file
def test_it_runs_as_an_ordinary_user_and_tells_its_health(file: Path) -> None:
    found = dict(last_stage(file))
    words = [word for word, _ in last_stage(file)]
    assert found["USER"] == "shimekiri" and any("useradd --system --uid 10001" in rest for _, rest in last_stage(file))
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert "CMD" in found["HEALTHCHECK"]
    asked = found["HEALTHCHECK"].partition("CMD ")[2]
    assert asked.startswith(("python -m coordinator.nodes.answers ", "coordinator status "))


def test_the_entry_of_an_agent_hands_on_names_and_options() -> None:
    found = dict(last_stage(FILES[0]))
    shell, option, script, name = json.loads(found["ENTRYPOINT"])
    environment = dict(re.findall(r"(\w+)=(\S+)", found["ENV"].replace("$PATH", "")))
    done = subprocess.run(
        [shell, option, script.replace("exec node-agent", "printf '%s\\n'"), name, "--operators", "a b.py"],
        env=environment | {"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "run", "--name", "agent", "--control", "0.0.0.0:7700", "--data", "0.0.0.0:7701",
        "--state", "/var/lib/shimekiri", "--tls", "/etc/shimekiri/tls", "--operators", "a b.py",
    ]  # fmt: skip


@pytest.mark.soak
@each_file
def test_it_builds(file: Path) -> None:
    builder = shutil.which("podman") or shutil.which("docker")
    if builder is None or subprocess.run([builder, "info"], capture_output=True, check=False).returncode:
        pytest.skip("neither podman nor docker can build here")
    done = subprocess.run([builder, "build", "-f", str(file), str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
