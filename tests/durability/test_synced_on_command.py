"""What a command said it wrote is there after a loss of power, and never half of it."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from coordinator.change import intention
from coordinator.change.intention import Intention
from coordinator.fleet.addresses import Addresses, AgentAddress
from coordinator.fleet.collection import collect, run_traces
from coordinator.fleet.collection.run_traces import RunTraces
from coordinator.fleet.identity import certificate_folder, certificates
from coordinator.fleet.profile import profile_file
from coordinator.plan import plan_file
from coordinator.spec.files.security import CA_FILE, CERT_FILE, COORDINATOR, KEY_FILE
from node_agent.tools.doctor import real_time_permission
from protos.records import HEADER_BYTES, unpack_records
from protos.segments import records_in
from tests.coordinator.fleet.collection.test_run_traces import chunk
from tests.coordinator.guarantee import written_plans
from tests.durability.forgetful_disk import Disk

NOW = certificates.now()


def collected(left: Path) -> list[int]:
    files = sorted((left / "run").rglob("*.trace"))
    return [each.seq for path in files for each in unpack_records(records_in(path.read_bytes()))]


def test_collected_records_are_in_the_run_directory_once_they_were_synced(
    powered: Callable[[], Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent frees them then. Every chunk but the first begins a segment, in folders that are there already."""
    monkeypatch.setattr(run_traces, "SEGMENT_BYTES", HEADER_BYTES)
    disk = powered()
    traces = RunTraces(disk.root / "run" / "trace" / "raw", [])
    for first in (0, 10, 20):
        incarnation = traces.incarnation("a", 7)
        incarnation.add(chunk(first, 10))
        incarnation.sync()
        disk.lose_power()
        assert [collected(left) for left in disk.left[-2:]] == [list(range(first + 10))] * 2


def identities(folder: Path) -> Iterator[tuple[Path, dict[str, bytes]]]:
    """Those that are in their place, with their files."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            yield path, {each.name: each.read_bytes() for each in path.iterdir()}


@pytest.mark.parametrize("renew", [False, True])
def test_an_identity_is_whole_at_every_instant_and_the_new_one_on_return(
    powered: Callable[[], Disk], renew: bool
) -> None:
    disk = powered()
    if renew:
        certificate_folder.make(disk.root, ["a"], renew=False, new_ca=False, now=NOW)
        disk = powered()
    certificate_folder.make(disk.root, ["a"], renew=renew, new_ca=False, now=NOW)
    disk.lose_power()
    made = dict(identities(disk.root))
    assert {path.name for path in made} == {"a", COORDINATOR, "client"}
    for left in disk.left:
        for path, files in identities(left):
            assert set(files) == {CA_FILE, CERT_FILE, KEY_FILE} and all(files.values()), path
    for left in disk.left[-2:]:
        assert {disk.root / path.name: files for path, files in identities(left)} == made
        assert (left / CA_FILE).read_bytes() == (disk.root / CA_FILE).read_bytes()


@pytest.mark.parametrize("old", [False, True])
def test_a_permission_is_the_old_or_the_new_at_every_instant(powered: Callable[[], Disk], old: bool) -> None:
    disk = powered()
    grant = real_time_permission.RealTimePermission("pi", Path("/usr/bin/python3"), disk.root)
    contents = {None, grant.content()}
    if old:
        real_time_permission.apply(grant)
        earlier = grant.path.read_text().replace("90", "20")
        grant.path.write_text(earlier)
        contents = {earlier, grant.content()}
        disk = powered()
    real_time_permission.apply(grant)
    disk.lose_power()
    found = {path.read_text() if (path := left / grant.path.name).exists() else None for left in disk.left}
    assert found == contents


def write_plan(path: Path, number: int) -> None:
    plan_file.write(written_plans.paper(number), path)


def write_addresses(path: Path, number: int) -> None:
    Addresses(path, {"a": AgentAddress("a", f"127.0.0.1:770{number}", "127.0.0.1:7710")}).write()


def write_costs(path: Path, number: int) -> None:
    profile_file.write({f"query{number}": {}}, path)


def write_run(path: Path, number: int) -> None:
    collect._write(path, {"run": str(number)})


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("plan.json", write_plan),
        ("addresses.json", write_addresses),
        ("costs.yaml", write_costs),
        ("run.json", write_run),
    ],
)
def test_a_file_is_the_old_or_the_new_at_every_instant_and_the_new_on_return(
    powered: Callable[[], Disk], name: str, write: Callable[[Path, int], None], old: bool
) -> None:
    disk = powered()
    if old:
        write(disk.root / name, 1)
        disk = powered()
    before = content(disk.root / name)
    write(disk.root / name, 2)
    disk.lose_power()
    after = content(disk.root / name)
    found = [content(left / name) for left in disk.left]
    assert after and before != after and set(found) == {before, after} and found[-2:] == [after] * 2


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


class Call(NamedTuple):
    what: str
    path: Path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Each fsync and each rename that is made, in order; the real ones are made too."""
    found: list[Call] = []
    sync, rename = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        found.append(Call("sync", Path(os.readlink(f"/proc/self/fd/{descriptor}"))))
        sync(descriptor)

    def renamed(source: Path, target: Path) -> None:
        found.append(Call("rename", Path(target)))
        rename(source, target)

    monkeypatch.setattr("os.fsync", synced)
    monkeypatch.setattr("os.replace", renamed)
    return found


@pytest.mark.parametrize("write", [write_plan, write_addresses, write_costs, write_run])
def test_content_is_synced_before_its_file_gets_its_name_and_the_name_thereafter(
    tmp_path: Path, calls: list[Call], write: Callable[[Path, int], None]
) -> None:
    write(tmp_path / "file", 1)
    synced, *rest = calls
    assert synced.what == "sync" and synced.path.parent == tmp_path and synced.path.name != "file"
    assert rest == [Call("rename", tmp_path / "file"), Call("sync", tmp_path)]


def test_an_intention_is_on_the_disk_before_the_change_is_made_and_until_the_files_are_in_step(
    powered: Callable[[], Disk],
) -> None:
    disk = powered()
    path, plans = disk.root / "plan.json", [written_plans.paper(number) for number in (1, 2)]
    meant = Intention(str(path), str(path), plans[0].hash, plans[1].hash)
    plan_file.write(plans[0], path)
    plan_file.write(plans[1], meant.waiting)
    disk = powered()
    with intention.written(meant):
        disk.lose_power()
        for left in disk.left[-2:]:
            assert intention.left(left / path.name) == meant
        tried = len(disk.left)
        meant.put_in_step()
        disk.lose_power()
    for left in disk.left[tried:]:
        there = replace(meant, path=str(left / path.name), target=str(left / path.name))
        assert intention.left(left / path.name) == meant
        there.put_in_step()
        assert plan_file.read(left / path.name) == plans[1] and plan_file.read(left / there.old.name) == plans[0]
    for left in disk.left[-2:]:
        assert not (left / meant.waiting.name).exists() and (left / meant.old.name).exists()
