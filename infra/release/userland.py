"""Debian userlands by debootstrap: small systems beside this one, in which commands run as their users type them.

Every command has mounts and processes of its own, which end with it: nothing stays mounted, however a trial ends. What
reaches it of this host: how to get packages, that is apt's Debian mirror and `Acquire` settings, proxies, certificates
and settings of pip.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SUITES = {"bookworm": "Debian 12", "trixie": "Debian 13"}
EMULATION = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")
HOSTS = "/opt/host"  # files of the host that its settings name; where they are there, a package may replace them
ORDINARY = "ordinary"  # the user that every userland has beside root
PASSED = re.compile(r"(PIP|SSL)_\w+|(https?|ftp|all|no)_proxy", re.IGNORECASE)
OWN_PROCESSES = ("--pid", "--fork", "--kill-child")
ENTER = """
mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev" &&
mount -t tmpfs -o mode=1777 shm "$0/dev/shm" && mount --bind /etc/resolv.conf "$0/etc/resolv.conf" &&
mount --bind /etc/hosts "$0/etc/hosts" && exec chroot "$@"
"""


class UserlandError(Exception):
    """There can be no userland here; a sentence that says why and what to do."""


@dataclass(frozen=True, slots=True)
class Userland:
    """A system of its own at `root`. environment: what each command gets beside PATH and HOME."""

    root: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self, words: Sequence[object], user: str = "root", own_processes: bool = True) -> list[str]:
        """The same command, in there, in the user's home. own_processes: what it leaves behind ends with it."""
        given = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home(user),
            "LANG": "C.UTF-8", **self.environment,
        }  # fmt: skip
        return [
            "unshare", "--mount", *(OWN_PROCESSES if own_processes else ()), "sh", "-c", ENTER, str(self.root),
            f"--userspec={user}:{user}", str(self.root), "env", "-i", "-C", home(user),
            *(f"{name}={value}" for name, value in given.items()), *map(str, words),
        ]  # fmt: skip

    def run(self, words: Sequence[object], user: str = "root", seconds: float = 600) -> tuple[int, str]:
        """Exit code, 124 after `seconds`; and what it said."""
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            with subprocess.Popen(
                self.command(words, user), stdin=subprocess.DEVNULL, stdout=said, stderr=said
            ) as process:
                try:
                    code = process.wait(seconds)
                except subprocess.TimeoutExpired:
                    code = 124
                finally:
                    process.kill()
            said.seek(0)
            return code, said.read()

    def place(self, source: Path, target: str, user: str = "root") -> None:
        """Copy a file or folder there; its owner is that user."""
        end = self.root / target.lstrip("/")
        end.parent.mkdir(parents=True, exist_ok=True)
        words = ["cp", "-rL" if source.is_file() else "-r", str(source), str(end)]
        subprocess.run(words, check=True)
        self.run(["chown", "-R", f"{user}:{user}", target])


def home(user: str) -> str:
    """A user's folder."""
    return "/root" if user == "root" else f"/home/{user}"


def why_not(emulated: bool = False) -> str | None:
    """Why there can be none here, None: there can. emulated: of arm64."""
    if os.geteuid() != 0:
        return "only root may make userlands: run it with sudo"
    missing = [name for name in ("debootstrap", "unshare", "chroot") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} is not installed: apt-get install debootstrap util-linux"
    tried = subprocess.run(["unshare", "--mount", *OWN_PROCESSES, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"this machine allows no mount namespaces: {tried.stderr.strip()}"
    if emulated and os.uname().machine != "aarch64":
        registered = EMULATION.read_text() if EMULATION.exists() else ""
        if "enabled" not in registered or not re.search(r"^flags: .*F", registered, re.MULTILINE):
            return (
                "no emulation of arm64 here: apt-get install qemu-user-static binfmt-support,"
                " and mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc"
            )
    return None


@contextmanager
def userland(
    suite: str, packages: Sequence[str], trees: Path | None = None, arch: str | None = None
) -> Iterator[Userland]:
    """A new one, gone at the end. trees: where what debootstrap makes is kept for the next time; arch: else the host's.

    Raises UserlandError.
    """
    with tempfile.TemporaryDirectory(prefix="shimekiri-userland-") as scratch:
        folder = trees or Path(scratch)
        made = folder / f"{suite}-{arch or 'native'}"
        if not made.exists():
            part = Path(tempfile.mkdtemp(prefix=made.name, dir=folder)) / "root"
            try:
                _debootstrap(suite, packages, part, arch)
                part.rename(made)
            finally:
                shutil.rmtree(part.parent)
        root = Path(scratch) / "root"
        subprocess.run(["cp", "-a", str(made), str(root)], check=True)
        given = settings()
        files = {value: f"{HOSTS}{value}" for value in given.values() if value.startswith("/")}
        system = Userland(root, {name: files.get(value, value) for name, value in given.items()})
        _furnish(system, files)
        yield system


def _debootstrap(suite: str, packages: Sequence[str], root: Path, arch: str | None) -> None:
    own = ["unshare", "--mount", *OWN_PROCESSES, "--mount-proc"]
    foreign = ["--foreign", f"--arch={arch}"] if arch else []
    words = ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", *foreign]
    steps = [[*own, *words, suite, str(root), mirror()]]
    if arch:
        steps.append([*own, "chroot", str(root), "/debootstrap/debootstrap", "--second-stage"])
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
        if done.returncode:
            said = (done.stderr + done.stdout).strip().splitlines()[-1:]
            raise UserlandError(f"{suite}{f' {arch}' if arch else ''}: debootstrap failed: {' '.join(said)}")


def _furnish(system: Userland, files: Mapping[str, str]) -> None:
    """The ordinary user, what to get packages with, and what commands get mounted. files: the host's, and where to."""
    for name in ("resolv.conf", "hosts"):
        (system.root / "etc" / name).unlink(missing_ok=True)
        (system.root / "etc" / name).touch()
    told = subprocess.run(
        ["apt-config", "dump", "--format", '%F "%v";%n', "Acquire"], capture_output=True, text=True, check=False
    )
    (system.root / "etc/apt/apt.conf.d/00host").write_text(told.stdout)
    for source, target in files.items():
        system.place(Path(source), target)
    system.run(["useradd", "--create-home", "--user-group", ORDINARY])


def settings() -> dict[str, str]:
    """The host's variables and pip's configuration; what names a folder of the host is left out."""
    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    found = dict[str, str]()
    for line in told.splitlines():
        name, _, value = line.partition("=")
        found[f"PIP_{name.rpartition('.')[2].replace('-', '_').upper()}"] = str(ast.literal_eval(value))
    found |= {name: value for name, value in os.environ.items() if PASSED.fullmatch(name)}
    return {
        name: value for name, value in found.items() if not value.startswith(("/", "file:")) or Path(value).is_file()
    }


def mirror() -> str:
    """Where this host's apt gets Debian from. Raises UserlandError."""
    form = "$(LABEL) $(REPO_URI)"
    told = subprocess.run(
        ["apt-get", "indextargets", "--format", form, "Created-By: Packages"], capture_output=True, text=True,
        check=False,
    ).stdout  # fmt: skip
    for line in told.splitlines():
        if line.startswith("Debian "):
            return line.split()[1]
    raise UserlandError("apt knows no Debian mirror here: run it on a Debian, after apt-get update")
