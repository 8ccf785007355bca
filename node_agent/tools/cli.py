"""The command line of an agent: `node-agent [run]` and the other commands."""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from node_agent.tools import agent_start, client_options, run_options, shell_completion, simulate
from node_agent.tools.agent_start import InputError, say
from node_agent.tools.doctor import command as doctor

ALL = """examples:
  node-agent --name a                                      an agent on this machine, on any free ports
  node-agent run --name a --control 127.0.0.1:7700 --data 127.0.0.1:7701 --state /var/lib/shimekiri
  node-agent run --name a --operators my_operators.py      with operators of your own
  node-agent run --name a --tls certs/a --control 0.0.0.0:7700 --data 0.0.0.0:7701    for other machines, by mutual TLS
  node-agent run --name a --cores 3 --data 127.0.0.1:7701  places a, a.1 and a.2, data ports 7701 to 7703
  node-agent operators --operators my_operators.py --json > operators.json
  node-agent charges                                       what the runtime costs here, for the cluster file
  node-agent feed parcels parcels.jsonl --to 127.0.0.1:7701    lines of a file into a source
  node-agent listen sorted --from 127.0.0.1:7701               results as JSON lines
  node-agent simulate plan.json --operators my_operators.py    a plan in virtual time
  node-agent doctor                                        is this machine fit for an agent? with the mends
  node-agent grant-rt                                      how a user gets real-time priorities
  node-agent completion bash                               completion for your shell; --help: how to install it

Exit codes: 0 done; 2 bad input; 1 anything else. 'node-agent COMMAND --help' has more examples.
"""
OPERATORS_EXAMPLES = """examples:
  node-agent operators                                     what is installed, for people
  node-agent operators --operators my_operators.py --json > operators.json

With --json: operators (version, kind, inputs, output, code, by name), codecs, fields of messages, and what is
unavailable. The cluster file names that file. Exit codes: 0 done; 2 a file of operators that cannot be loaded.
"""
CHARGES_EXAMPLES = """examples:
  node-agent charges                                       what the runtime costs here, for the cluster file
  node-agent charges --seconds 10 --cpu 1 --json
  node-agent charges --type my.Reading --payload reading.json --tls certs/a

With --json: the figures of decision, drain and side, what they were measured with, warnings, and the line for the
cluster file (yaml). Exit codes: 0 done; 2 bad arguments; 1 anything else.
"""
COMMANDS = ("run", "operators", "charges", "feed", "listen", "simulate", *doctor.COMMANDS, "completion")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or (given[0].startswith("-") and given[0] not in {"-h", "--help", "--version"}):
        given.insert(0, "run")
    if not given[0].startswith("-") and given[0] not in COMMANDS:
        return say(f"node-agent: no such command: {given[0]!r}; {_meant(given[0])}", 2)
    parsed = command_line().parse_args(given)
    if parsed.command in doctor.COMMANDS:
        return _doctor(parsed)
    commands = {
        "run": agent_start.run, "operators": _operators, "charges": _charges, "feed": _feed, "listen": _listen,
        "simulate": simulate.run, "completion": _completion,
    }  # fmt: skip
    return commands[parsed.command](parsed)


def _meant(word: str) -> str:
    """What to write in place of a command that is none."""
    from difflib import get_close_matches

    near = get_close_matches(word, COMMANDS, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(COMMANDS)}"


def _feed(parsed: argparse.Namespace) -> int:
    from node_agent.tools import feed

    return feed.run(parsed)


def _listen(parsed: argparse.Namespace) -> int:
    from node_agent.tools import listen

    return listen.run(parsed)


def _completion(parsed: argparse.Namespace) -> int:
    return shell_completion.run(parsed.shell)


class _Parser(argparse.ArgumentParser):
    """One line for a wrong argument, not the whole usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; '{self.prog} --help' shows what it takes\n")


class _Version(argparse.Action):
    """Says the release and ends."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from protos.installed import release

        print(release.said(parser.prog))  # noqa: T201
        parser.exit()


def command_line() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser: argparse.ArgumentParser = _Parser(
        prog="node-agent",
        description="Runs one node's part of a plan, earliest deadline first. `run` is the default command.",
        epilog=ALL,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, help="the release, and nothing else")
    commands = parser.add_subparsers(dest="command", metavar="{" + ",".join(COMMANDS) + "}")
    raw = argparse.RawDescriptionHelpFormatter
    run_options.add_to(commands)
    operators = commands.add_parser(
        "operators", help="list what is installed here", epilog=OPERATORS_EXAMPLES, formatter_class=raw
    )
    operators.add_argument(
        "--operators", type=Path, action="append", default=[], metavar="FILE.py", help="may be repeated"
    )
    operators.add_argument("--json", action="store_true", help="operators.json for the cluster file")
    charges = commands.add_parser(
        "charges", help="measure what the runtime costs here", epilog=CHARGES_EXAMPLES, formatter_class=raw
    )
    charges.add_argument("--seconds", type=float, default=3.0, metavar="N", help="0.2 to 600 (default 3)")
    charges.add_argument("--type", default="json", metavar="NAME", help="the streams' type (default json)")
    charges.add_argument("--payload", type=Path, metavar="FILE.json", help="a typical value of that type, as JSON")
    charges.add_argument("--burst", type=int, default=1, metavar="N", help="tuples that a source sends in one write")
    charges.add_argument("--cpu", type=int, default=-1, metavar="N", help="stay on that core, as the node will")
    charges.add_argument("--tls", type=Path, metavar="DIR", help="under TLS, with the identity of a node at both ends")
    charges.add_argument("--no-rt", action="store_true", help="stay in the normal scheduling class")
    charges.add_argument("--json", action="store_true", help="the figures as JSON")
    doctor.add_to(commands)
    client_options.add_feed(commands)
    client_options.add_listen(commands)
    simulate.add_to(commands)
    script = commands.add_parser(
        "completion", help="a script for your shell that completes all this", epilog=shell_completion.EXAMPLES,
        formatter_class=raw,
    )  # fmt: skip
    script.add_argument("shell", choices=shell_completion.SHELLS, help="the shell that reads the script")
    return parser


def _operators(parsed: argparse.Namespace) -> int:
    from node_agent.operators.registry import Registry
    from node_agent.operators.signature import OperatorError

    try:
        with contextlib.redirect_stdout(sys.stderr):  # what the files print is no part of the list
            described = Registry(parsed.operators).describe()
    except OperatorError as error:
        return say(str(error), 2)
    except SystemExit:
        mend = "put what is no operator below: if __name__ == '__main__':"
        return say(f"{', '.join(map(str, parsed.operators))}: ends the program as it is loaded; {mend}", 2)
    if parsed.json:
        print(json.dumps(described, indent=1))  # noqa: T201
        return 0
    for name, row in described["operators"].items():
        inputs = ", ".join(f"{port}: {type_}" for port, type_ in row["inputs"].items())
        print(f"{name} {row['version']}  {row['kind']}({inputs}) -> {row['output']}")  # noqa: T201
    for name, why in described.get("unavailable", {}).items():
        print(f"{name}  unavailable: {why}")  # noqa: T201
    return 0


def _charges(parsed: argparse.Namespace) -> int:
    from node_agent.operators.codecs import CodecError, UnknownCodecError
    from node_agent.tls.names import TlsError
    from node_agent.tools import overhead

    try:
        if not 0.2 <= parsed.seconds <= 600:
            raise InputError("out_of_range", f"--seconds {parsed.seconds:g}: between 0.2 and 600", subject="--seconds")
        if parsed.type != "json" and parsed.payload is None:
            text = f"--type {parsed.type}: give a typical value with --payload FILE.json"
            raise InputError("no_payload", text, subject="--type")
        if not 1 <= parsed.burst <= 1000:
            raise InputError("out_of_range", f"--burst {parsed.burst}: between 1 and 1000", subject="--burst")
        cores = sorted(os.sched_getaffinity(0))
        if parsed.cpu >= 0 and parsed.cpu not in cores:
            there = ", ".join(map(str, cores))
            text = f"--cpu {parsed.cpu}: there is no such core here"
            raise InputError("no_core", text, f"there are {there}", subject="--cpu")
        value = overhead.TYPICAL if parsed.payload is None else _payload(parsed.payload)
        rt, tls = not parsed.no_rt, parsed.tls
        found = overhead.measure(parsed.seconds, parsed.type, value, rt, parsed.cpu, parsed.burst, tls)
    except (InputError, CodecError, UnknownCodecError, TlsError) as error:
        return say(f"node-agent: {error}", 2)
    except overhead.ChargesError as error:
        return say(f"node-agent: {error}", 1)
    print(json.dumps(found.document(), indent=1) if parsed.json else overhead.report_text(found))  # noqa: T201
    return 0


def _doctor(parsed: argparse.Namespace) -> int:
    def addresses() -> tuple[tuple[str, int], tuple[str, int]]:
        tls = parsed.tls
        control, data = (
            agent_start.address("--control", parsed.control, tls),
            agent_start.address("--data", parsed.data, tls),
        )
        agent_start.check_cores("a", parsed.cores, data[1])
        return control, data

    try:
        return doctor.run(parsed, addresses)
    except InputError as error:
        return say(f"node-agent: {error}", 2)


def _payload(path: Path) -> object:
    mend = "give a file with one value in JSON"
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        text = f"--payload {path}: cannot be read ({error.strerror})"
        raise InputError("unreadable", text, mend, subject="--payload") from error
    except ValueError as error:
        raise InputError("not_json", f"--payload {path}: is not JSON ({error})", mend, subject="--payload") from error
