"""The folder with a cluster's certificates: what is there, what is missing, and how it is written.

    certs/ca.pem  ca.key  a/ b/ coordinator/ client/     each with ca.pem, cert.pem, key.pem

All keys are made and written to a folder of their own in there first. Then they are moved into place, one identity at a
time, while signals wait; so neither Ctrl-C nor a full disk nor a loss of power leaves half an identity.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography.x509 import Certificate

from coordinator import durable_files
from coordinator.errors import BadInputError, Mistake, Problem, bad_file, unwritable
from coordinator.fleet.identity import certificates
from coordinator.fleet.identity.certificates import Ca, Issued, UnusableError
from coordinator.spec.files.security import CA_FILE, CERT_FILE, CLIENT, COORDINATOR, KEY_FILE

CA_KEY = "ca.key"
STAGE = ".partial-"
IGNORED = ".gitignore"  # keys in a repository are keys of everybody who can read it


@dataclass(frozen=True)
class Entry:
    """One identity, or the CA. made: just now; exposed: others than its owner may read the key; missing: extensions
    without which strict verifiers refuse it."""

    path: Path
    begins: datetime
    ends: datetime
    made: bool
    exposed: bool = False
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Made:
    """What is there now. before: where the earlier ones were moved, with a new CA. others: identities of this CA that
    are not the cluster's."""

    ca_name: str
    ca: Entry
    identities: dict[str, Entry]
    before: Path | None
    others: tuple[Path, ...]


def make(folder: Path, nodes: Sequence[str], *, renew: bool, new_ca: bool, now: datetime) -> Made:
    """Make what is missing: the CA, and an identity for each node, the coordinator and clients. renew: all identities
    anew; new_ca: start over, and move what was there aside. Raises BadInputError; nothing has changed then."""
    wanted = (*nodes, COORDINATOR, CLIENT)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        ca = None if new_ca else _read_ca(folder, wanted, now)
        in_order = {} if ca is None or renew else _in_order(folder, ca, wanted)
        with _staged(folder) as stage:
            moves = [] if ca else [IGNORED, CA_KEY, CA_FILE]
            ca = ca or _new_ca(stage, now)
            missing = [name for name in wanted if name not in in_order]
            for name in missing:
                _write(stage / name, ca, certificates.issue(ca, name, now))
            before = _aside(folder, wanted, now) if new_ca else None
            _move(stage, folder, [*missing, *moves], before)
    except OSError as error:
        raise unwritable(Path(error.filename or folder), error) from error
    in_order |= {name: _read(folder / name, ca, name, made=True) for name in missing}
    root = _entry(folder / CA_FILE, ca.certificate, CA_KEY in moves, folder / CA_KEY)
    ordered = {name: in_order[name] for name in wanted}
    return Made(ca.name, root, ordered, before, () if new_ca else tuple(_others(folder, wanted)))


def _read_ca(folder: Path, wanted: Sequence[str], now: datetime) -> Ca | None:
    """None: none of this is there yet."""
    there = [name for name in (CA_FILE, CA_KEY) if (folder / name).exists()]
    anew = "'--new-ca' makes all anew, for every node"
    if not there:
        if left := next((name for name in wanted if (folder / name).exists()), None):
            mend = f"put ca.pem and ca.key back, or: {anew}"
            raise bad_file(folder / left, "no_ca", "is there, and the CA is not", mend)
        return None
    if len(there) == 1:
        gone = CA_KEY if there == [CA_FILE] else CA_FILE
        hint = "a copy is in every identity" if gone == CA_FILE else "it is where this was run before"
        raise bad_file(folder / gone, "no_ca", f"is missing ({hint})", f"put it back, or: {anew}")
    try:
        return certificates.read_ca((folder / CA_FILE).read_bytes(), (folder / CA_KEY).read_bytes(), now)
    except UnusableError as error:
        raise bad_file(folder, "unusable_ca", str(error), anew) from error


def _in_order(folder: Path, ca: Ca, wanted: Sequence[str]) -> dict[str, Entry]:
    """Identities that are there, each found to be in order. Raises BadInputError with all that are not."""
    found: dict[str, Entry] = {}
    problems = []
    for name in wanted:
        if not (folder / name).exists():
            continue
        try:
            found[name] = _read(folder / name, ca, name, made=False)
        except (UnusableError, OSError) as error:
            why = f"{error.strerror} ({Path(error.filename).name})" if isinstance(error, OSError) else str(error)
            mistake = Mistake("unusable_identity", why, "'--renew' makes all identities anew")
            problems.append(Problem(mistake, str(folder / name)))
    if problems:
        raise BadInputError(problems)
    return found


def _read(path: Path, ca: Ca, name: str, made: bool) -> Entry:
    files = ((path / CA_FILE).read_bytes(), (path / CERT_FILE).read_bytes(), (path / KEY_FILE).read_bytes())
    return _entry(path, certificates.check(ca, name, files), made, path / KEY_FILE)


def _entry(path: Path, certificate: Certificate, made: bool, key: Path) -> Entry:
    exposed = bool(key.stat().st_mode & 0o077)
    missing = tuple(certificates.missing_extensions(certificate))
    return Entry(path, certificate.not_valid_before_utc, certificate.not_valid_after_utc, made, exposed, missing)


def _others(folder: Path, wanted: Sequence[str]) -> Iterator[Path]:
    """Identities of nodes that the cluster has not, or no more; they are valid all the same."""
    known = (*wanted, *(path.name for path in folder.glob(".*")))
    yield from (path.parent for path in sorted(folder.glob(f"*/{CERT_FILE}")) if path.parent.name not in known)


@contextmanager
def _staged(folder: Path) -> Iterator[Path]:
    """A directory in the folder, gone afterwards with what is in it; so are those that a loss of power has left."""
    for left in folder.glob(f"{STAGE}*"):
        shutil.rmtree(left, ignore_errors=True)
    stage = Path(tempfile.mkdtemp(prefix=STAGE, dir=folder))  # mode 0700
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _new_ca(stage: Path, now: datetime) -> Ca:
    ca, issued = certificates.new_ca(now)
    durable_files.write_new(stage / CA_FILE, issued.cert, 0o644)
    durable_files.write_new(stage / CA_KEY, issued.key, 0o600)
    durable_files.write_new(stage / IGNORED, b"*\n", 0o644)
    return ca


def _write(path: Path, ca: Ca, issued: Issued) -> None:
    path.mkdir(mode=0o700)
    durable_files.write_new(path / CA_FILE, ca.pem, 0o644)
    durable_files.write_new(path / CERT_FILE, issued.cert, 0o644)
    durable_files.write_new(path / KEY_FILE, issued.key, 0o600)
    durable_files.sync(path)


def _aside(folder: Path, wanted: Sequence[str], now: datetime) -> Path | None:
    """Where to move what is there before starting over; None where nothing is."""
    if not any((folder / name).exists() for name in (*wanted, CA_FILE, CA_KEY)):
        return None
    return folder / f"before-{now:%Y%m%dT%H%M%SZ}"


def _move(stage: Path, folder: Path, names: Sequence[str], before: Path | None) -> None:
    """Each into its place, or all of it undone; what was there goes to `before`, or away with the stage."""
    old = before or stage / ".old"
    leaving = names if before is None else [path.name for path in folder.iterdir() if _is_ours(path)]
    moves = [(folder / name, old / name) for name in leaving if (folder / name).exists()]
    moves += [(stage / name, folder / name) for name in names]
    done: list[tuple[Path, Path]] = []
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        old.mkdir(mode=0o700)
        for source, target in moves:
            source.rename(target)
            done.append((source, target))
        durable_files.sync(folder)
    except OSError:
        for source, target in reversed(done):
            target.rename(source)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _is_ours(path: Path) -> bool:
    return path.name in (CA_FILE, CA_KEY, IGNORED) or (path / CERT_FILE).exists()
