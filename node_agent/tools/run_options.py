"""The options of `node-agent run`, as argparse takes them, and without it where they are written out plainly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    import argparse

EXAMPLES = """examples:
  node-agent --name a                                      an agent on this machine, on any free ports
  node-agent run --name a --control 127.0.0.1:7700 --data 127.0.0.1:7701 --state /var/lib/shimekiri
  node-agent run --name a --operators my_operators.py      with operators of your own
  node-agent run --name a --tls certs/a --control 0.0.0.0:7700 --data 0.0.0.0:7701    for other machines, by mutual TLS
  node-agent run --name a --cores 3 --data 127.0.0.1:7701  places a, a.1 and a.2, data ports 7701 to 7703

An agent that is ready prints one JSON line: name, address, control and data ports, rt (whether it has the FIFO class),
pid, tls where it has an identity; with several cores also the name and the data port of each place. It ends on SIGTERM
and Ctrl-C. `ps` and `top` show its processes as agent, control, runtime and connectors, each with the name of its node.
Exit codes: 0 ended as asked; 2 bad arguments, identity or operators file; 1 anything else.
"""


class RunOptions(Protocol):
    """What an agent is started with."""

    name: str
    control: str
    data: str
    cores: int
    tls: Path | None
    state: Path | None
    sync: float
    operators: list[Path]
    drift_ppm: int
    clock_domain: str
    no_rt: bool
    check_operators: bool
    metrics: str
    log_json: bool


class Option(NamedTuple):
    """One of them. of: makes its value of the word behind it; None: it is a flag. several: it may be repeated."""

    word: str
    help: str
    of: Callable[[str], object] | None = str
    default: object = None
    metavar: str | None = None
    required: bool = False
    several: bool = False

    @property
    def attribute(self) -> str:
        """Where its value is found."""
        return self.word.strip("-").replace("-", "_")

    @property
    def initial(self) -> object:
        """Its value where it is not given."""
        return [] if self.several else False if self.of is None else self.default

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """As argparse has it."""
        if self.of is None:
            parser.add_argument(self.word, action="store_true", help=self.help)
        elif self.several:
            parser.add_argument(
                self.word, type=self.of, action="append", default=[], metavar=self.metavar, help=self.help
            )
        else:
            parser.add_argument(
                self.word, type=self.of, default=self.default, required=self.required, metavar=self.metavar,
                help=self.help,
            )  # fmt: skip


OPTIONS = (
    Option("--name", "the node's name in the cluster file", required=True),
    Option("--control", "gRPC; port 0: any (default)", default="127.0.0.1:0", metavar="HOST:PORT"),
    Option("--data", "tuples; port 0: any (default)", default="127.0.0.1:0", metavar="HOST:PORT"),
    Option(
        "--cores",
        "runtimes, each a place of its own (a, a.1, ...); leave a core of the machine to control (default 1)",
        int, 1, "K",
    ),
    Option("--tls", "speak mutual TLS with the identity in DIR (certs/NAME)", Path, metavar="DIR"),
    Option("--state", "plans and traces; default: ./.shimekiri/NAME", Path, metavar="DIR"),
    Option(
        "--sync", "bring the trace to the disk this often: what a loss of power may cost (default 1)", float, 1.0,
        "SECONDS",
    ),
    Option("--operators", "may be repeated", Path, metavar="FILE.py", several=True),
    Option("--drift-ppm", "how far this clock may be off (default 50)", int, 50, "N"),
    Option("--clock-domain", "for tests: pretend to have a clock of one's own", default="", metavar="NAME"),
    Option("--no-rt", "stay in the normal scheduling class", None),
    Option(
        "--check-operators",
        "for tests: encode and decode each result, as between nodes, and find operators that change inputs",
        None,
    ),
    Option("--metrics", "serve Prometheus; port 0: any (default: off)", default="", metavar="HOST:PORT"),
    Option("--log-json", "what it says on stderr: a JSON object per line", None),
)  # fmt: skip
BY_WORD = {each.word: each for each in OPTIONS}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command, for argparse."""
    from argparse import RawDescriptionHelpFormatter as Raw

    parser = commands.add_parser("run", help="run an agent", epilog=EXAMPLES, formatter_class=Raw)
    for each in OPTIONS:
        each.add_to(parser)


def plainly(words: Sequence[str]) -> RunOptions | None:
    """What argparse makes of a command line of whole words, each value behind its option; None: it has to look itself,
    as where help is wanted, another command, or something is wrong."""
    if not words or (words[0] != "run" and words[0] not in BY_WORD):
        return None
    found = {each.attribute: each.initial for each in OPTIONS}
    left = iter(words[1:] if words[0] == "run" else words)
    for word in left:
        option = BY_WORD.get(word)
        if option is None:
            return None
        value: object = True
        if option.of is not None:
            text = next(left, "-")
            if text.startswith("-"):
                return None
            try:
                value = option.of(text)
            except ValueError:
                return None
        before = found[option.attribute]
        found[option.attribute] = [*before, value] if isinstance(before, list) else value
    if any(each.required and found[each.attribute] is None for each in OPTIONS):
        return None
    return cast("RunOptions", SimpleNamespace(**found))
