"""What `make test-fresh` and `make test-arm64` stand on: commands in a tree leave neither mounts nor processes behind,
and what the host needs to get packages reaches them. The trials themselves run once per release."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from infra.release import userland
from infra.release.release_steps import Outcome, Trial, table
from infra.release.userland import Userland, UserlandError

WHY_NOT = None if os.geteuid() == 0 else "only root may mount"
rooted = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
HERE = Userland(Path("/"), {"PIP_RETRIES": "7"})  # this system, with mounts of its own


def processes(of: str) -> list[str]:
    """Command lines of this host that have this word."""
    lines = (_read(path) for path in Path("/proc").glob("[0-9]*/cmdline"))
    return [line for line in lines if of in line.split("\0")]


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


@rooted
def test_a_command_gets_its_settings_and_leaves_no_mount_and_no_process() -> None:
    before, unusual = Path("/proc/self/mounts").read_text(), f"98765.{os.getpid()}"
    code, said = HERE.run(["sh", "-c", f"env; ls /dev/shm | wc -l; sleep {unusual} & exit 3"])
    assert code == 3 and "PIP_RETRIES=7" in said and "HOME=/root" in said
    assert said.splitlines()[-1] == "0"  # a shared memory of its own
    assert Path("/proc/self/mounts").read_text() == before and not processes(unusual)


@rooted
def test_a_command_that_takes_too_long_is_ended_with_what_it_started() -> None:
    unusual = f"87654.{os.getpid()}"
    assert HERE.run(["sh", "-c", f"sleep {unusual} & sleep {unusual}"], seconds=2)[0] == 124
    end = time.monotonic() + 20
    while processes(unusual) and time.monotonic() < end:
        time.sleep(0.05)
    assert not processes(unusual)


@rooted
def test_a_step_passes_by_its_exit_code_and_what_it_says(tmp_path: Path) -> None:
    trial = Trial("here", HERE, tmp_path)
    assert trial.step("fine", ["echo", "12 passed in 3 s"], 60, expects="passed", note=r"\d+ passed")
    assert not trial.step("silent", ["true"], 60, expects="passed")
    assert not trial.step("broken", ["sh", "-c", "echo passed; exit 1"], 60, expects="passed")
    shown = table(trial.outcomes)
    assert re.search(r"fine +passed +\d+ +12 passed", shown) and shown.count("FAILED") == 2
    assert (tmp_path / "here-broken.log").read_text() == "exit code 1\npassed\n"


def test_settings_of_the_host_are_passed_but_for_its_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.touch()
    for name, value in {
        "PIP_CERT": str(bundle), "SSL_CERT_FILE": str(bundle), "SSL_CERT_DIR": str(tmp_path), "PIP_RETRIES": "7",
        "PIP_FIND_LINKS": f"file://{tmp_path}", "https_proxy": "http://proxy:3128", "PIPELINE": "1", "LANG": "C",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    found = userland.settings()
    assert found["PIP_CERT"] == found["SSL_CERT_FILE"] == str(bundle)
    assert found["PIP_RETRIES"] == "7" and found["https_proxy"] == "http://proxy:3128"
    assert not {"SSL_CERT_DIR", "PIP_FIND_LINKS", "PIPELINE", "LANG"} & set(found)


@pytest.mark.parametrize("trial", ["fresh", "arm64"])
def test_where_nothing_can_be_tried_one_line_says_why(trial: str) -> None:
    words = [sys.executable, "-m", "infra.release", trial]
    user = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    done = subprocess.run([*user, *words], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode in (126, 127) or "Permission denied" in done.stderr:
        pytest.skip("this Python, or a library of it, is root's alone")
    assert done.returncode == 2
    assert done.stderr == "release: only root may make userlands: run it with sudo\n"


def test_what_a_machine_lacks_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "/nowhere")
    assert "debootstrap, unshare, chroot is not installed: apt-get install" in str(userland.why_not())
    for name in ("debootstrap", "unshare", "chroot", "apt-get"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(userland, "EMULATION", tmp_path / "none")
    assert userland.why_not() is None
    if os.uname().machine != "aarch64":
        assert "apt-get install qemu-user-static binfmt-support" in str(userland.why_not(emulated=True))
    with pytest.raises(UserlandError, match="apt knows no Debian mirror"):
        userland.mirror()


def test_the_table_shows_every_outcome() -> None:
    shown = table([Outcome("a", "set-up", True, 61.4, "Java 21"), Outcome("a", "demo", False, 3.0)])
    assert shown.splitlines()[1:] == ["a       set-up  passed  61  Java 21", "a       demo    FAILED  3"]
