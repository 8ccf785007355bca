"""What the playbook asks of systemctl, for units of one folder that stands for /: python one_root_systemctl.py ROOT ...

Nothing here is systemd: it reads the unit that was installed and starts what that says, so that a playbook can be tried
on a machine of which it must not change anything. Each call is a line in ROOT/calls.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path


def _unit(root: Path, service: str) -> tuple[list[str], dict[str, str]]:
    """Command and environment of shimekiri-agent@NAME."""
    kind, _, name = service.partition("@")
    lines = (root / f"etc/systemd/system/{kind}@.service").read_text().replace("%i", name).splitlines()
    told = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    given = dict(line.split("=", 1) for line in Path(told["EnvironmentFile"]).read_text().splitlines())
    command: list[str] = []
    for word in shlex.split(told["ExecStart"]):
        if word.startswith("${"):
            command.append(given[word[2:-1]])
        else:
            command += given[word[1:]].split() if word.startswith("$") else [word]
    return command, given


def _pid(root: Path, service: str) -> int:
    """0 where it does not run."""
    try:
        pid = int((root / f"run-{service}").read_text())
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, ValueError):
        return 0
    return 0 if state == "Z" else pid


def _stop(root: Path, service: str) -> None:
    if pid := _pid(root, service):
        os.kill(pid, signal.SIGTERM)
        while _pid(root, service):
            time.sleep(0.02)


def _start(root: Path, service: str) -> None:
    command, given = _unit(root, service)
    with (root / f"log-{service}").open("ab") as log:
        process = subprocess.Popen(
            command, env={"PATH": "/usr/bin:/bin", **given}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, cwd="/",
        )  # fmt: skip
    (root / f"run-{service}").write_text(str(process.pid))


def main(root: Path, *words: str) -> int:
    """One call; returns the exit code."""
    verb, *rest = [word for word in words if word != "-q"]
    with (root / "calls").open("a") as calls:
        calls.write(" ".join([verb, *rest]) + "\n")
    service, enabled = rest[-1] if rest else "", root / "enabled"
    if verb == "is-active":
        return 0 if _pid(root, service) else 3
    if verb == "is-enabled":
        return 0 if enabled.exists() else 1
    if verb == "enable":
        enabled.touch()
    if verb in {"restart", "disable"}:
        _stop(root, service)
    if verb == "disable":
        enabled.unlink(missing_ok=True)
    if verb == "restart":
        _start(root, service)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
