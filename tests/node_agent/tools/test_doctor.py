"""`node-agent doctor` and `grant-rt`: each finding from facts both ways, readers on trees of files, the commands."""

import errno
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from node_agent.tools import cli
from node_agent.tools.doctor import (
    command,
    disk,
    finding,
    heat,
    machine,
    readers,
    real_time_permission,
    software,
    storage,
    tcp_ports,
)
from node_agent.tools.doctor.examine import Asked, Sources, examine
from node_agent.tools.doctor.finding import Finding
from node_agent.tools.doctor.heat import Firmware, Zone
from node_agent.tools.doctor.machine import MIB, RealTime
from node_agent.tools.doctor.software import Port, WallClock
from node_agent.tools.doctor.storage import Storage
from protos.installed import requirements
from tests.sentences import Wording

SAID = Wording("grant-rt", "permission")

ROOT = Path(__file__).parents[3]
SOME = Storage("/state", "", free=10_000 * MIB, bytes_per_s=50_000_000, sync_ns=4_000_000)
FULL = Storage("/state", "", free=10 * MIB, bytes_per_s=500_000, sync_ns=4_000_000)


def run(*arguments: str, cwd: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", "node_agent", *arguments]
    return subprocess.run(
        line, cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )


def well_formed(found: Finding) -> None:
    assert found.what and "\n" not in found.what + found.mend
    assert bool(found.mend) == (found.state != "ok"), found


MACHINE = [
    (machine.real_time(RealTime(90, 0, True)), "ok", "CAP_SYS_NICE"),
    (machine.real_time(RealTime(90, 95, False)), "ok", "rtprio"),
    (machine.real_time(RealTime(50, 60, False)), "note", "supervisor does not"),
    (machine.real_time(RealTime(0, 0, False)), "wrong", "refused"),
    (machine.real_time(RealTime(0, 0, False), wanted=False), "note", "--no-rt"),
    (machine.real_time_share(-1, 1_000_000), "ok", "not capped"),
    (machine.real_time_share(950_000, 1_000_000), "ok", "95 % of each 1 s"),
    (machine.real_time_share(500_000, 1_000_000), "note", "50 %"),
    (machine.real_time_share(0, 1_000_000), "wrong", "no time"),
    (machine.real_time_share(None, None), "note", "cannot be read"),
    (machine.cores(4, 4, 3), "ok", "1 left for control"),
    (machine.cores(4, 4, 4), "note", "4 runtimes take all"),
    (machine.cores(1, 4, 1), "note", "1 of 4"),
    (machine.cores(2, 2, 3), "wrong", "3 runtimes"),
    (machine.clock_source("tsc", ["tsc"], 60), "ok", "tsc"),
    (machine.clock_source("acpi_pm", ["tsc", "acpi_pm"], 3000), "note", "3000 ns"),
    (machine.clock_source("", [], 3000), "note", "unknown"),
    (machine.clock_resolution(1, 52), "ok", "52 ns"),
    (machine.clock_resolution(1, 30_000), "note", "30000 ns"),
    (machine.clock_resolution(4_000_000, 0), "wrong", "4000000 ns"),
    (machine.memory(2000 * MIB, 4000 * MIB, 1), "ok", "2000 MiB"),
    (machine.memory(200 * MIB, 500 * MIB, 1), "note", "200 MiB"),
    (machine.memory(60 * MIB, 500 * MIB, 1), "wrong", "60 MiB"),
    (machine.shared_memory(64 * MIB, 4), "ok", "64 MiB"),
    (machine.shared_memory(None, 1), "note", "no /dev/shm"),
    (machine.shared_memory(1 * MIB, 4), "wrong", "12 MiB"),
    (machine.swap([]), "ok", "none"),
    (machine.swap([("/dev/zram0", 512 * MIB, 0)]), "note", "zram"),
    (machine.swap([("/var/swap", 512 * MIB, 3 * MIB)]), "note", "512 MiB, 3 MiB used"),
]
HEAT = [
    (heat.throttling(Firmware("Raspberry Pi 4", 0)), "ok", "none since"),
    (heat.throttling(Firmware("Raspberry Pi 4", 0x50000)), "note", "under-voltage, throttled"),
    (heat.throttling(Firmware("Raspberry Pi 4", 0x50005)), "wrong", "now: under-voltage, throttled"),
    (heat.throttling(Firmware("Raspberry Pi 4", 0x80008)), "wrong", "soft temperature limit"),
    (heat.throttling(Firmware("Raspberry Pi 4", None, "vcgencmd is not installed")), "note", "not installed"),
    (heat.throttling(Firmware("", None, "vcgencmd is not installed")), "ok", "no Raspberry Pi"),
    (heat.temperature([]), "ok", "no thermal zones"),
    (heat.temperature([Zone("cpu", 50_000)]), "ok", "50 C"),
    (heat.temperature([Zone("gpu", 40_000), Zone("cpu", 76_000)]), "note", "cpu: 76 C"),
    (heat.temperature([Zone("cpu", 71_000, (70_000, 90_000))]), "wrong", "at 70 C"),
    (heat.governor({}), "ok", "not governed"),
    (heat.governor({"cpu0": "performance"}), "ok", "performance"),
    (heat.governor({"cpu0": "performance", "cpu1": "ondemand"}), "note", "ondemand"),
]
STORAGE = [
    (storage.storage(SOME)[0], "ok", "can be written"),
    (storage.storage(Storage("/state", "", exists=False))[0], "ok", "can be made"),
    (storage.storage(Storage("/state", "", agent="12"))[0], "note", "pid 12"),
    (storage.storage(Storage("/state", "", in_memory=True))[0], "note", "in memory"),
    (storage.storage(Storage("/state", "cannot be written: Read-only file system"))[0], "wrong", "Read-only"),
    (storage.storage(SOME)[1], "ok", "10000 MiB"),
    (storage.disk_space(300 * MIB), "note", "256 MiB"),
    (storage.spool(10 * MIB, 600, 30), "ok", "the oldest for 10 min"),
    (storage.spool(200 * MIB, 600, 600), "note", "full in 2 min"),
    (storage.spool(200 * MIB, 600, 0), "note", "78 % of 256 MiB"),
    (storage.spool(256 * MIB, 600, 600), "wrong", "dropped"),
    (storage.storage(FULL)[1], "wrong", "10 MiB"),
    (storage.storage(SOME)[2], "ok", "50 MB/s"),
    (storage.disk_speed(3_000_000, 0), "note", "46875 trace records"),
    (storage.disk_speed(50_000_000, 300_000_000), "note", "300 ms"),
    (storage.storage(FULL)[2], "wrong", "0.5 MB/s"),
]
SOFTWARE = [
    (software.hot_path(True), "ok", "compiled"),
    (software.hot_path(False), "ok", "plain Python"),
    (software.python("3.12.1", ">=3.11", 64), "ok", "3.12.1"),
    (software.python("3.9.2", ">=3.11", 64), "wrong", "needs >=3.11"),
    (software.python("3.11.2", ">=3.11", 32), "wrong", "64-bit"),
    (software.package("grpcio", "1.85.1", "==1.85.1"), "ok", "1.85.1"),
    (software.package("grpcio", "1.71.0", "==1.85.1"), "wrong", "==1.85.1 is needed"),
    (software.package("grpcio", None, "==1.85.1"), "wrong", "not installed"),
    (software.package("grpcio", "1.85.1", None), "note", "not known"),
    (software.package("grpcio", "1.85.1", "@ file:///x"), "note", "cannot be compared"),
    (software.port(Port("control", "127.0.0.1", 0)), "ok", "any free port"),
    (software.port(Port("data", "::1", 7701)), "ok", "[::1]:7701 is free"),
    (software.port(Port("data", "127.0.0.1", 7701, errno.EADDRINUSE, "nginx (pid 7)")), "wrong", "by nginx (pid 7)"),
    (software.port(Port("data", "127.0.0.1", 80, errno.EACCES)), "wrong", "not allowed"),
    (software.port(Port("data", "::1", 80, errno.EADDRNOTAVAIL)), "wrong", "no such address"),
    (software.port(Port("data", "127.0.0.1", 80, errno.EMFILE)), "wrong", "Too many open files"),
    (software.wall_clock(WallClock(True, "timedatectl")), "ok", "says timedatectl"),
    (software.wall_clock(WallClock(False, "chronyc")), "note", "not synchronised, says chronyc"),
    (software.wall_clock(WallClock(None)), "note", "verdicts need none"),
]


@pytest.mark.parametrize(("found", "state", "what"), [*MACHINE, *HEAT, *STORAGE, *SOFTWARE])
def test_a_finding_follows_from_facts(found: Finding, state: str, what: str) -> None:
    well_formed(found)
    assert (found.state, what in found.what) == (state, True), found


def test_mends_fit_what_is_wrong() -> None:
    assert "grant-rt" in machine.real_time(RealTime(0, 0, False)).mend
    assert "container" in machine.real_time(RealTime(0, 0, True)).mend
    assert "container" in machine.real_time(RealTime(0, -1, False)).mend
    assert "--cores 3" in machine.cores(4, 4, 4).mend
    assert "second core" in machine.cores(1, 1, 1).mend
    assert machine.clock_source("hpet", ["hpet", "tsc"], 2000).mend.startswith("echo tsc |")
    assert "power supply" in heat.throttling(Firmware("Raspberry Pi 4", 0x50000)).mend
    assert "cool" in heat.throttling(Firmware("Raspberry Pi 4", 0x80000)).mend
    assert "grpcio==1.85.1" in software.package("grpcio", None, "==1.85.1").mend
    assert "--data" in software.port(Port("data of place 1", "127.0.0.1", 7702, errno.EADDRINUSE)).mend
    assert len(storage.storage(Storage("/state", "is full"))) == 1  # nothing to say of a disk that was not tried


@pytest.mark.parametrize(
    ("version", "demanded", "good"),
    [
        ("6.33.6", "<6.34,>=6.33", True),
        ("6.34", "<6.34,>=6.33", False),
        ("6.33", ">=6.33.0", True),
        ("10.2", ">=9", True),
        ("1.85.1", "", True),
        ("1.85.1", "==1.85.*", True),
        ("1.85.1", "!=1.85.*", False),
        ("1.85.1rc1", "==1.85.1", True),
        ("1.86", "~=1.85.0", False),
        ("1.85.3", "~=1.85.1, !=1.85.2", True),
        ("2", ">1,<=2", True),
    ],
)
def test_versions_are_compared_by_number(version: str, demanded: str, good: bool) -> None:
    assert requirements.meets(version, demanded) is good


def test_the_table_needs_no_colour_and_the_exit_code_counts_what_is_wrong() -> None:
    findings = [finding.ok("cores", "4"), finding.note("swap", "1 MiB", "swapoff")]
    assert finding.exit_code(findings) == 0
    findings.append(finding.wrong("memory", "10 MiB", "more"))
    assert finding.exit_code(findings) == 1
    assert finding.table(findings).splitlines() == [
        "ok     cores   4",
        "note   swap    1 MiB",
        "               -> swapoff",
        "wrong  memory  10 MiB",
        "               -> more",
        "",
        "1 wrong, 1 note, 1 ok",
    ]


# -- readers


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def says(text: str, code: int = 0) -> Sequence[str]:
    return (sys.executable, "-S", "-c", f"import sys; print({text!r}); sys.exit({code})")


NOTHING = ("/no/such/command",)


def test_real_time_is_tried_in_a_child(tmp_path: Path) -> None:
    tree(tmp_path, {"nice": "Name:\tx\nCapEff:\t0000000000800000\n", "plain": "CapEff:\t0000000000000000\n"})
    before = os.sched_getscheduler(0)
    assert readers.real_time(tmp_path / "nice", lambda _: True).highest == 90
    assert readers.real_time(tmp_path / "nice", lambda _: True).capable
    half = readers.real_time(tmp_path / "plain", lambda priority: priority == 50)
    assert (half.highest, half.capable) == (50, False)
    assert readers.real_time(tmp_path / "none", lambda _: False).highest == 0
    readers.real_time(tmp_path / "none")
    assert os.sched_getscheduler(0) == before


def test_a_pi_is_read_from_its_files(tmp_path: Path) -> None:
    pi = tree(
        tmp_path,
        {
            "model": "Raspberry Pi 4 Model B\0",
            "thermal/thermal_zone0/type": "cpu-thermal\n",
            "thermal/thermal_zone0/temp": "61000\n",
            "thermal/thermal_zone0/trip_point_0_type": "active\n",
            "thermal/thermal_zone0/trip_point_0_temp": "40000\n",
            "thermal/thermal_zone0/trip_point_1_type": "critical\n",
            "thermal/thermal_zone0/trip_point_1_temp": "110000\n",
            "thermal/thermal_zone1/temp": "-274000\n",
            "cpu/cpu0/cpufreq/scaling_governor": "ondemand\n",
            "cpu/cpufreq/boost": "1\n",
            "swaps": "Filename Type Size Used Priority\n/var/swap file 102400 1024 -2\n",
            "cgroup/memory.max": "max\n",
            "cgroup/memory.current": "1\n",
            "limited/memory.max": "1000\n",
            "limited/memory.current": "400\n",
            "limited/memory.stat": "anon 200\ninactive_file 150\nactive_file 50\n",
        },
    )
    found = readers.firmware(pi / "model", says("throttled=0x50005"))
    assert found == Firmware("Raspberry Pi 4 Model B", 0x50005)
    assert readers.firmware(pi / "model", NOTHING).why == "/no/such/command is not installed"
    refused = readers.firmware(pi / "model", says("VCHI initialization failed", 255))
    assert (refused.flags, refused.why) == (None, "VCHI initialization failed")
    assert readers.zones(pi / "thermal") == [Zone("cpu-thermal", 61_000, (110_000,))]
    assert readers.governors(pi / "cpu") == {"cpu0": "ondemand"}
    assert readers.swaps(pi / "swaps") == [("/var/swap", 100 * MIB, 1 * MIB)]
    assert readers.group_memory(pi / "cgroup") is None
    assert readers.group_memory(pi / "limited") == (1000, 250)


def test_the_first_that_answers_tells_whether_the_wall_clock_is_synchronised() -> None:
    leap = "Reference ID : 1\nLeap status     : Normal"
    assert readers.wall_clock(says("NTPSynchronized=yes"), NOTHING, NOTHING).synchronised
    assert readers.wall_clock(NOTHING, says(leap), NOTHING).synchronised
    assert readers.wall_clock(says("NTPSynchronized=no"), NOTHING, NOTHING).synchronised is False
    assert readers.wall_clock(NOTHING, says("Leap status : Not synchronised"), NOTHING).synchronised is False
    assert readers.wall_clock(NOTHING, NOTHING, says("synchronised to NTP server")).synchronised
    assert readers.wall_clock(NOTHING, says("", 1), NOTHING) == WallClock(None)


def test_the_disk_is_tried_without_making_the_directory(tmp_path: Path) -> None:
    mounts = tree(tmp_path, {"mounts": f"/dev/x / ext4 rw 0 0\nnone {tmp_path} tmpfs rw 0 0\n"}) / "mounts"
    found = disk.read(tmp_path / "a/b", mounts, 1 << 16)
    assert (found.failed, found.exists, found.in_memory, found.agent) == ("", False, True, "")
    assert found.free > 0 and found.bytes_per_s > 0 and found.sync_ns > 0
    assert os.listdir(tmp_path) == ["mounts"]
    assert "is no directory" in disk.read(mounts / "a", mounts).failed
    assert not disk.read(tmp_path, tmp_path / "none", 1 << 16).in_memory


def test_an_agent_that_holds_the_state_directory_is_named(tmp_path: Path) -> None:
    import fcntl

    with (tmp_path / "lock").open("w") as lock:
        lock.write("4711\n")
        lock.flush()
        assert disk.read(tmp_path, Path("/proc/mounts"), 4096).agent == ""
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert disk.read(tmp_path, Path("/proc/mounts"), 4096).agent == "4711"


def test_ports_are_tried() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        found = tcp_ports.read("data", "127.0.0.1", taken.getsockname()[1])
    assert found.error == errno.EADDRINUSE
    assert str(os.getpid()) in found.holder
    assert tcp_ports.read("data", "127.0.0.1", 0).error == 0
    asked = tcp_ports.wanted(("127.0.0.1", 7702), ("127.0.0.1", 7701), 3)
    assert list(asked) == ["control", "data", "data of place 1", "data of place 2"]
    assert asked["data of place 2"] == ("127.0.0.1", 7703)
    twice = software.same_ports(asked)
    assert [found.subject for found in twice] == ["port data of place 1"]
    assert software.same_ports(tcp_ports.wanted(("::1", 0), ("::1", 0), 3)) == []


def test_a_machine_without_anything_to_read_still_has_every_finding(tmp_path: Path) -> None:
    bare = Sources(
        proc=tmp_path, sys=tmp_path, shared_memory=tmp_path / "shm", vcgencmd=NOTHING, timedatectl=NOTHING,
        chronyc=NOTHING, ntpstat=NOTHING, product="no-such-product", ask_real_time=lambda _: False,
    )  # fmt: skip
    found = {each.subject: each for each in examine(Asked(state=tmp_path / "state"), bare)}
    for each in found.values():
        well_formed(each)
    assert len(found) == 25
    assert (found["real time"].state, found["shared memory"].state, found["grpcio"].state) == ("wrong", "note", "note")


# -- the commands


def test_doctor_for_real(tmp_path: Path) -> None:
    found = run("doctor", "--json", "--no-rt", "--state", "s", cwd=tmp_path)
    told = json.loads(found.stdout)
    assert (found.returncode == 1) == (told["wrong"] > 0)
    assert found.stderr == "" and os.listdir(tmp_path) == []
    states = {each["subject"]: each["state"] for each in told["findings"]}
    assert (states["Python"], states["port data"]) == ("ok", "ok")
    assert states["state"] in {"ok", "note"}  # a temporary directory may be in memory
    assert told["ok"] + told["note"] + told["wrong"] == len(told["findings"])


def test_doctor_says_that_a_port_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert cli.main(["doctor", "--control", address, "--state", str(tmp_path)]) == 1
    line = next(line for line in capsys.readouterr().out.splitlines() if "port control" in line)
    assert line.startswith("wrong") and f"{address} is taken" in line


@pytest.mark.parametrize(
    ("arguments", "says_"),
    [
        (["doctor", "--control", "7700"], "write HOST:PORT"),
        (["doctor", "--cores", "0"], "between 1 and 64"),
        (["grant-rt", "--user", "../x"], "the name of a user"),
        (["grant-rt", "--user", "no-such-user"], "no such user"),
        (["grant-rt", "--limits-dir", "/no/such"], "no such directory"),
    ],
)
def test_bad_arguments(arguments: list[str], says_: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    told = capsys.readouterr().err
    assert says_ in told and told.count("\n") == 1


def test_grant_rt_says_three_ways_with_their_undo_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["grant-rt", "--user", "pi", "--limits-dir", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    python = Path(sys.executable).resolve()
    assert "pi - rtprio 90" in told and "LimitRTPRIO=90" in told
    assert f"setcap cap_sys_nice=ep {python}" in told and f"setcap -r {python}" in told and "Risk:" in told
    assert told.count("undo:") == 3 and os.listdir(tmp_path) == []


def test_grant_rt_applies_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["grant-rt", "--apply", "--user", "pi", "--limits-dir", str(tmp_path)]
    assert cli.main(line) == 0
    file = tmp_path / "shimekiri-pi.conf"
    written = capsys.readouterr().out
    assert f"{file}: written" in written and f"sudo rm {file}" in written
    assert file.read_text().splitlines()[-1] == "pi - rtprio 90" and file.stat().st_mode & 0o777 == 0o644
    at = file.stat().st_mtime_ns
    assert cli.main(line) == 0
    assert "nothing written" in capsys.readouterr().out and file.stat().st_mtime_ns == at
    file.write_text(file.read_text().replace("90", "20"))  # by an earlier version
    assert cli.main(line) == 0
    assert "pi - rtprio 90" in file.read_text() and os.listdir(tmp_path) == [file.name]


def test_grant_rt_leaves_what_is_not_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tree(tmp_path, {"shimekiri-pi.conf": "pi - rtprio 1\n"}) / "shimekiri-pi.conf"
    assert cli.main(["grant-rt", "--apply", "--user", "pi", "--limits-dir", str(tmp_path)]) == 1
    assert "left as it is" in capsys.readouterr().err and file.read_text() == "pi - rtprio 1\n"


def test_grant_rt_without_the_right_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, content: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(real_time_permission, "_write", refused)
    limits = tmp_path / "limits.d"
    with SAID.refuses("limits.d not_allowed"):
        real_time_permission.apply(
            real_time_permission.RealTimePermission("pi", Path("/usr/bin/python3"), limits, "sudo x grant-rt --apply")
        )
    with SAID.refuses("shimekiri-pi.conf unwritable"):
        monkeypatch.undo()
        real_time_permission.apply(
            real_time_permission.RealTimePermission("pi", Path("/usr/bin/python3"), tmp_path / "none")
        )


def test_with_sudo_the_caller_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "pi")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert command.caller() == "pi"
    monkeypatch.delenv("SUDO_USER")
    assert command.caller() == "root"


def test_traces_that_wait_are_found_in_the_state_directory(tmp_path: Path) -> None:
    (tmp_path / "spool" / ("0" * 16)).mkdir(parents=True)
    for name, age_s in (("0", 600), ("1", 240)):
        file = tmp_path / "spool" / ("0" * 16) / f"{name}.rec"
        file.write_bytes(bytes(1000))
        os.utime(file, (time.time() - age_s,) * 2)
    found = disk.read(tmp_path, Path("/proc/mounts"), 4096)
    assert (found.spool_bytes, found.spool_span_s) == (2000, 360) and found.spool_age_s >= 599
    assert [each.subject for each in storage.storage(found)][-1] == "traces"
