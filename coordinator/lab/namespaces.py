"""Network namespaces joined by a bridge: each is a machine with an address, a name and a loopback of its own.

    10.77.0.1 pi1 ─ eth0 ┐
    10.77.0.2 pi2 ─ eth0 ┼─ bridge, in a namespace too
    10.77.0.3 desk ─ eth0 ┘

The host's own network is not touched, and nothing in the lab leads out of it. The machines share processor, disk and
clock. A name is known by itself and with `.local`, as a network with mDNS would have it.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from coordinator.error_codes import Code
from coordinator.errors import Mistake

NAMES = Path("/run/netns")
HOSTS = Path("/etc/netns")  # what `ip netns exec` puts over /etc, by namespace
PREFIX = "shimekiri"
NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
BRIDGE = "0net"  # no machine can have this name
STOP_S = 10.0
MOST = 64
NOBODY = "02:00:00:00:00:00"  # a hardware address that no machine has


class LabError(Exception):
    """The lab cannot be made; a sentence that says why and what to do."""

    def __init__(self, code: Code, text: str) -> None:
        self.mistake = Mistake(code, text)
        super().__init__(text)


@dataclass(frozen=True)
class Line:
    """What a machine's line to the bridge does to each packet that it sends: as `tc netem` takes it, empty: nothing."""

    delay: str = ""
    jitter: str = ""
    loss: str = ""

    def words(self) -> list[str]:
        """The rule in tc's words."""
        for name, value, form in (
            ("delay", self.delay, TIME),
            ("jitter", self.jitter, TIME),
            ("loss", self.loss, PART),
        ):
            if value and not form.fullmatch(value):
                raise LabError("bad_value", f"{name} '{value}': write it like {'5ms' if form is TIME else '0.5%'}")
        if self.jitter and not self.delay:
            raise LabError("missing_parameter", "jitter varies a delay: give both")
        delay = ["delay", self.delay, *([self.jitter] if self.jitter else [])] if self.delay else []
        return [*delay, *(["loss", self.loss] if self.loss else [])]


TIME = re.compile(r"[0-9]{1,5}(\.[0-9]{1,3})?(us|ms|s)")
PART = re.compile(r"[0-9]{1,2}(\.[0-9]{1,4})?%")
PLAIN = Line()


class Lab:
    """`with Lab(["pi1", "pi2", "desk"]) as lab:` machines of these names; gone afterwards, with all that runs there.

    Raises LabError where the system has or allows no namespaces, in words that a test may skip with.
    """

    def __init__(self, machines: Sequence[str], line: Line = PLAIN, subnet: str = "10.77.0.0/24") -> None:
        wrong = [name for name in machines if not NAME.fullmatch(name)]
        if wrong or not machines or len(set(machines)) < len(machines) or len(machines) > MOST:
            raise LabError(
                "bad_name", f"machines: give 1 to {MOST} names of small letters, each once, not '{' '.join(machines)}'"
            )
        try:
            network = ipaddress.IPv4Network(subnet)
        except ValueError as error:
            raise LabError("bad_value", f"subnet {subnet}: write it like 10.77.0.0/24 ({error})") from error
        if network.num_addresses < len(machines) + 2:
            raise LabError("too_many_nodes", f"subnet {subnet} has no room for {len(machines)} machines")
        hosts = network.hosts()
        self.addresses = {name: str(next(hosts)) for name in machines}
        self._bits, self._rule = network.prefixlen, line.words()
        self._stem = f"{PREFIX}-{os.getpid()}"

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def command(self, machine: str, words: Sequence[object]) -> list[str]:
        """The same command, in that machine."""
        return ["ip", "netns", "exec", self.namespace(machine), *map(str, words)]

    def run(self, machine: str, words: Sequence[object], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run it there to its end. options: as of subprocess.run."""
        given = {"capture_output": True, "text": True, **options}
        return subprocess.run(self.command(machine, words), check=False, **given)

    def start(
        self, machine: str, words: Sequence[object], out: IO[str], environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> subprocess.Popen[str]:  # fmt: skip
        """Begin it there, in a session of its own; what it says goes to `out`. It ends with the lab at the latest."""
        return subprocess.Popen(
            self.command(machine, words), stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment,
            cwd=folder, start_new_session=True, text=True,
        )  # fmt: skip

    def namespace(self, machine: str) -> str:
        """Its name for `ip netns`."""
        return f"{self._stem}-{machine}"

    def processes(self, machine: str) -> list[int]:
        """Ids of what runs in that machine."""
        return _processes(self.namespace(machine))

    def cut(self, machine: str) -> None:
        """Nothing leaves or reaches that machine, and nobody is told; until `mend`."""
        _ip("-n", self.namespace(BRIDGE), "link", "set", self._port(machine), "down")

    def mend(self, machine: str) -> None:
        """The end of `cut`."""
        _ip("-n", self.namespace(BRIDGE), "link", "set", self._port(machine), "up")

    def cut_way(self, sender: str, receiver: str) -> None:
        """What one machine sends to another one is lost, the other direction goes on; until `mend_way`.

        Its frames go to a hardware address that no machine has.
        """
        _ip(*self._neighbour("replace", sender, receiver), "lladdr", NOBODY, "nud", "permanent")

    def mend_way(self, sender: str, receiver: str) -> None:
        """The end of `cut_way`."""
        _ip(*self._neighbour("del", sender, receiver))

    def _port(self, machine: str) -> str:
        return f"port{list(self.addresses).index(machine)}"

    def _neighbour(self, what: str, sender: str, receiver: str) -> tuple[str, ...]:
        return ("-n", self.namespace(sender), "neigh", what, self.addresses[receiver], "dev", "eth0")

    def close(self) -> None:
        """End what runs in there and remove all; signals wait until that is done."""
        with _undisturbed():
            remove(self._stem)

    def _make(self) -> None:
        if shutil.which("ip") is None:
            raise LabError("not_installed", "'ip' is not installed: install iproute2")
        if os.geteuid() != 0:
            raise LabError("not_allowed", "only root may make network namespaces: run it with sudo")
        _ip("netns", "add", self.namespace(BRIDGE))
        bridge = ("-n", self.namespace(BRIDGE))
        _ip(*bridge, "link", "add", "br0", "type", "bridge")
        _ip(*bridge, "link", "set", "br0", "up")
        names = "".join(f"{address} {name} {name}.local\n" for name, address in self.addresses.items())
        for name, address in self.addresses.items():
            _ip("netns", "add", self.namespace(name))
            here, port = ("-n", self.namespace(name)), self._port(name)
            _ip(*here, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", self.namespace(BRIDGE))
            _ip(*bridge, "link", "set", port, "master", "br0", "up")
            _ip(*here, "addr", "add", f"{address}/{self._bits}", "dev", "eth0")
            _ip(*here, "link", "set", "lo", "up")
            _ip(*here, "link", "set", "eth0", "up")
            _hosts(HOSTS / self.namespace(name), f"127.0.0.1 localhost\n::1 localhost\n{names}")
            if self._rule:
                self._shape(name)

    def _shape(self, name: str) -> None:
        if shutil.which("tc") is None:
            raise LabError("not_installed", "'tc' is not installed, so there is no delay or loss: install iproute2")
        words = ["tc", "-n", self.namespace(name), "qdisc", "add", "dev", "eth0", "root", "netem", *self._rule]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            why = done.stderr.strip().removeprefix("Error: ").rstrip(".").lower()
            raise LabError(
                "no_netem", f"no delay or loss here ({why}): the kernel needs netem; 'modprobe sch_netem' loads it"
            )


def remove(stem: str) -> None:
    """Every namespace whose name begins so, with its processes: asked first, killed after STOP_S seconds."""
    found = [path.name for path in NAMES.glob(f"{stem}-*")]
    for number in (signal.SIGTERM, signal.SIGKILL):
        _end_all(found, number)
    for name in found:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    for folder in HOSTS.glob(f"{stem}-*"):
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # there are others, or there is none
        HOSTS.rmdir()


def _end_all(found: Sequence[str], number: signal.Signals) -> None:
    """Signal each process in these namespaces once, also those that come while one waits; until none is left."""
    end, asked = time.monotonic() + STOP_S, set[int]()
    while (running := {pid for name in found for pid in _processes(name)}) and time.monotonic() < end:
        for pid in running - asked:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        asked |= running
        time.sleep(0.02)


def remove_left() -> list[str]:
    """Labs of processes that were killed and could not remove them; the stems of their names."""
    stems = {match[0] for path in NAMES.glob(f"{PREFIX}-*") if (match := re.match(rf"{PREFIX}-(\d+)", path.name))}
    left = [stem for stem in sorted(stems) if not Path(f"/proc/{stem.rpartition('-')[2]}").exists()]
    for stem in left:
        remove(stem)
    return left


def why_not() -> str | None:
    """Why there can be no lab here, None: there can."""
    try:
        with Lab(["try"]):
            return None
    except LabError as error:
        return str(error)


def _hosts(folder: Path, text: str) -> None:
    """Another lab that ends may remove the folder above, which it finds empty, at any moment."""
    for left in reversed(range(5)):
        try:
            folder.mkdir(parents=True)
            break
        except FileNotFoundError:
            if not left:
                raise
    (folder / "hosts").write_text(text)


def _processes(namespace: str) -> list[int]:
    done = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=False)
    return [int(word) for word in done.stdout.split()]


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise LabError("no_namespaces", f"network namespaces cannot be made here: ip {' '.join(words)}: {said}")


@contextmanager
def _undisturbed() -> Iterator[None]:
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
