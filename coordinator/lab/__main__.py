"""`python -m coordinator.lab`: a lab to try things in, until Ctrl-C or the end of one command."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from coordinator.lab.namespaces import Lab, LabError, Line, remove_left
from coordinator.lab.walk import EXAMPLE, NODES, WalkError, walk

EXAMPLES = """examples:
  sudo .venv/bin/python -m coordinator.lab pi1 pi2 desk                          until Ctrl-C; prints how to enter each
  sudo .venv/bin/python -m coordinator.lab pi1 pi2 desk --at desk -- bash        until the shell ends
  sudo .venv/bin/python -m coordinator.lab pi1 pi2 desk --delay 5ms --loss 0.1%  on each line, both ways together
  sudo .venv/bin/python -m coordinator.lab --walk                                two nodes, mutual TLS, up to the report
  sudo .venv/bin/python -m coordinator.lab --remove-left                         labs of processes that were killed

The machines have addresses and names of their own (10.77.0.1 pi1, pi1.local ...) and reach each other and nothing else.
The host's network stays as it is; at the end all is removed, with every process that runs in there.
Exit codes: of the command; 0 after Ctrl-C; 2 bad arguments; 1 there can be no lab here, or the walk failed.
"""


def main() -> int:
    """Returns the exit code."""
    arguments = sys.argv[1:]
    own, command = (arguments, []) if "--" not in arguments else _parted(arguments)
    parser = argparse.ArgumentParser(
        prog="python -m coordinator.lab", description="Network namespaces as machines, on this one.", epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("machines", nargs="*", metavar="NAME", help="of small letters, digits and -")
    parser.add_argument("--at", metavar="NAME", help="where the command after -- runs")
    parser.add_argument("--delay", default="", metavar="TIME", help="of each packet that a machine sends, like 5ms")
    parser.add_argument("--jitter", default="", metavar="TIME", help="of the delay, like 1ms")
    parser.add_argument("--loss", default="", metavar="PART", help="of the packets that a machine sends, like 0.1%%")
    parser.add_argument(
        "--subnet", default="10.77.0.0/24", metavar="NET", help="of their addresses (default %(default)s)"
    )
    parser.add_argument("--walk", nargs="?", const=EXAMPLE, type=Path, metavar="DIR", help="default: two_nodes")
    parser.add_argument("--remove-left", action="store_true", help="remove what killed labs have left")
    given = parser.parse_args(own)
    signal.signal(signal.SIGTERM, _ended)
    line = Line(given.delay, given.jitter, given.loss)
    try:
        if given.remove_left:
            print("removed:", ", ".join(remove_left()) or "none")
            return 0
        if given.walk is not None:
            return walk(given.walk, _checked(parser, [*NODES], line, given.subnet)[1], print)
        if bool(command) != bool(given.at) or (given.at and given.at not in given.machines):
            parser.error("--at NAME and -- COMMAND go together, and NAME is one of the machines")
        with _checked(parser, given.machines, line, given.subnet)[0] as lab:
            return _stay(lab, given.at, command)
    except (LabError, WalkError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def _checked(parser: argparse.ArgumentParser, machines: list[str], line: Line, subnet: str) -> tuple[Lab, Line]:
    """A lab that is not made yet; ends with exit code 2 where it cannot be asked for like that."""
    try:
        return Lab(machines, line, subnet), line
    except LabError as error:
        parser.error(str(error))


def _parted(arguments: list[str]) -> tuple[list[str], list[str]]:
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _stay(lab: Lab, at: str | None, command: list[str]) -> int:
    for name, address in lab.addresses.items():
        print(f"{address:<15} {name:<20} sudo {shlex.join(lab.command(name, []))} COMMAND", file=sys.stderr)
    if at is not None:
        signal.signal(signal.SIGINT, lambda number, frame: None)  # the command's to answer; the lab ends with it
        return subprocess.run(lab.command(at, command), env=os.environ, check=False).returncode
    print("Ctrl-C removes them", file=sys.stderr)
    while True:
        signal.pause()


def _ended(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
