"""The coordinator at the desk: one process that has loaded it, and a child of it for each command.

    python -m infra.chaos.desk

Each line on stdin is a command as a JSON list of words; each line on stdout is what came of it: [exit code, stdout,
stderr]. A command is the real one, in a process of its own, that does not have to start Python first.
"""

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from typing import BinaryIO

LOADED = (  # what most commands import; no thread is begun by it
    "coordinator.fleet.agents", "coordinator.fleet.collection.collect", "coordinator.fleet.deployment.deploy",
    "coordinator.fleet.discovery", "coordinator.fleet.identity.certificate_folder", "coordinator.monitoring.metrics",
    "coordinator.spec.cluster",
)  # fmt: skip


def load() -> None:
    """Before the first command comes."""
    from coordinator.cli import app

    app.register()
    for name in LOADED:
        importlib.import_module(name)


def run(words: Sequence[str]) -> tuple[int, str, str]:
    """One command to its end: its exit code, and what it said on stdout and stderr."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        pid = os.fork()
        if not pid:
            _become(words, out, errors)
        _, status = os.waitpid(pid, 0)
        said = []
        for file in (out, errors):
            file.seek(0)
            said.append(file.read().decode(errors="replace"))
    return os.waitstatus_to_exitcode(status), said[0], said[1]


def _become(words: Sequence[str], out: BinaryIO, errors: BinaryIO) -> None:
    """The command, in this process; does not return."""
    from coordinator.__main__ import program

    code: object = 1
    try:
        for file, descriptor in ((out, 1), (errors, 2)):
            os.dup2(file.fileno(), descriptor)
        sys.argv = ["coordinator", *words]
        program()
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def main() -> None:
    """Until stdin ends."""
    load()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
