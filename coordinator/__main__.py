"""`python -m coordinator`, and the `coordinator` command."""

from __future__ import annotations

import gc
import os
import sys
import threading

from protos.installed.deferred import defer

EXTRA = {  # what the extra `coordinator` brings, as it is imported
    "typer", "rich", "ruamel", "pydantic", "textual", "ortools", "numpy", "cryptography", "greenlet",
    "zstandard",
}  # fmt: skip
REPORT = {"pyspark", "pandas", "pyarrow"}  # and what `report` brings beside it
COLLECT = (200_000, 20, 50)  # imports make no garbage: looking for it takes 6 % of a short command
UNUSED = (  # that Python's library, typer, protobuf and gRPC import, and hardly any command uses
    "ipaddress", "linecache", "secrets", "shellingham", "subprocess", "tokenize",
    "google.protobuf.internal.python_message", "grpc.aio",
)  # fmt: skip
PLUGINS = "pydantic.plugin._loader"  # which reads what each installed package says of itself, to find none
PROVER = "prover"  # the thread of coordinator.solve.heuristics.scale, which is not imported for its name
SPARK = "py4j"
INTERRUPTED = 130  # as shells say it: 128 and SIGINT


def program() -> None:
    """The process: `main`, and an end that waits for no solver, since HiGHS cannot be interrupted."""
    gc.set_threshold(*COLLECT)
    for name in UNUSED:
        defer(name)
    defer(PLUGINS, get_plugins=lambda: ())
    try:
        main()
        code = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(end.code + "\n")
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    if any(thread.name == PROVER for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    if SPARK not in sys.modules:  # its connections are to be garbage before the modules that they close with
        gc.freeze()  # else Python looks for garbage in all that is loaded as it ends: a fifth of a short command
    sys.exit(code)


def main() -> None:
    """Runs the command line; Ctrl-C ends it at any point with the code that shells give."""
    try:
        _run_mended()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _run_mended() -> None:
    """Names what to install where the coordinator's extra, or a part of it, is missing."""
    try:
        _run()
    except Exception as error:
        from protos.installed import requirements

        unmet = requirements.unmet()
        if not unmet:
            raise
        sys.stderr.write(f"coordinator: {requirements.mend(unmet)}\n")
        raise SystemExit(1) from error


def _run() -> None:
    try:
        from coordinator.cli.app import run

        run()  # commands import what they need when they run
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA | REPORT:
            raise
        extra = "report" if package in REPORT else "coordinator"
        sys.stderr.write(
            f"coordinator needs {error.name}, which is not installed: pip install 'shimekiri[{extra}]'"
            f" (from a file: 'shimekiri-VERSION-py3-none-any.whl[{extra}]')\n"
        )
        raise SystemExit(1) from error


if __name__ == "__main__":
    program()
