"""What a command said it wrote is there after a loss of power, and never half of it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coordinator.fleet.collection import run_traces
from coordinator.fleet.collection.run_traces import RunTraces
from coordinator.fleet.identity import certificate_folder, certificates
from coordinator.spec.files.security import CA_FILE, CERT_FILE, COORDINATOR, KEY_FILE
from node_agent.tools.doctor import real_time_permission
from protos.records import HEADER_BYTES, unpack_records
from protos.segments import records_in
from tests.coordinator.fleet.collection.test_run_traces import chunk
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
