"""Options of `node-agent feed` and `node-agent listen`. Imports nothing heavy: every start of an agent reads it."""

import argparse
from collections.abc import Callable
from pathlib import Path

FEED_EXAMPLES = """examples:
  node-agent feed parcels parcels.jsonl --to 127.0.0.1:7701                  as fast as they are admitted
  node-agent feed parcels parcels.csv --to a --rate 50                       a's address is in addresses.json here
  node-agent feed camera drive.csv --to pi1:7701 --by t --unit ms            with the gaps of the recording
  node-agent feed camera drive.jsonl --to pi1:7701 --rate 10 --repeat --age-ms 0,20
  ./sensor | node-agent feed scale --to 127.0.0.1:7701                       lines as they come
  node-agent feed camera drive.mcap --topic /camera --to pi1:7701            messages with the gaps of the recording
  node-agent feed scale /dev/ttyUSB0 --baud 115200 --skip-bad --to pi1:7701  a serial device that writes JSON lines

A line is one JSON value, or one row of CSV under a header, which becomes an object: numbers, true and false as such, an
empty cell as null, all else as text. Blank lines are passed over. For a stream of protobuf messages a line is the
message as JSON.

An MCAP file (pip install 'shimekiri[feed]') gives one topic's messages, encoded as JSON or protobuf, in the order of
the file, with the gaps of their log time; --by publish: of their publish time.

With gaps, by --rate, --by or MCAP, what is sent later than it was due counts as that much older, as it would be for a
sensor that does not wait. With --steady a delay puts off this line and all that follow instead: nothing is older for
it, and nothing comes closer together than it should. Without it, tuples after a delay can exceed the arrivals that the
source declares: they are admitted, then shed, unless its `tolerance` has room. With --repeat, the last gap is kept
between the last line and the first.

A connection that is lost is told and made again, for --outage seconds at most; what is sent after it is that much
older, and what the agent finds too old is refused and counted.

The last line on stderr says what became of all. Exit codes: 0 all lines were sent, or Ctrl-C; 2 bad arguments or input
(file:line: ...); 1 the agent cannot be reached, refuses the source, or gives no answer.
"""
LISTEN_EXAMPLES = """examples:
  node-agent listen gate --from 127.0.0.1:7702
  node-agent listen gate --from b --addresses run/addresses.json --count 100 > results.jsonl
  node-agent listen gate --from pi2:7701 --timeout 5 | head -3

Each result, from the connection on, is a JSON line: {"value": ..., "at_ns": when it was delivered, on that node's
clock, "latency_ns": [lo, hi] from origin to delivery, "lineage": [source, epoch, seq, ordinal]}. Protobuf messages are
shown as JSON.

A connection that is lost is told and made again, for --outage seconds at most; results meanwhile do not come.

Exit codes: 0 ended as asked, by --count, --timeout or Ctrl-C; 4 --timeout was over before --count had come; 2 bad
arguments; 1 the agent cannot be reached, by then, or refuses the output.
"""
Positive = Callable[[str], float]


def add_feed(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`node-agent feed`."""
    feed = commands.add_parser(
        "feed", help="put lines, or messages of an MCAP file, into a source", epilog=FEED_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    feed.add_argument("source", metavar="SOURCE", help="the source's name in the query")
    feed.add_argument("input", nargs="?", default="-", metavar="FILE", help="file or device; -: stdin (default)")
    _add_node(feed, "--to")
    feed.add_argument("--format", choices=("jsonl", "csv", "mcap"), help="default: by the file's suffix; else jsonl")
    pace = feed.add_mutually_exclusive_group()
    pace.add_argument("--rate", type=_between(1e-6, 1e6), metavar="N", help="lines per second")
    pace.add_argument("--by", metavar="FIELD", help="keep the gaps of this field, a time; of MCAP: log or publish")
    feed.add_argument("--unit", choices=("s", "ms", "us", "ns"), help="of --by (default s)")
    feed.add_argument("--repeat", action="store_true", help="from the start again, until Ctrl-C; files only")
    feed.add_argument("--steady", action="store_true", help="no gap is made shorter to make up for a delay")
    feed.add_argument("--topic", metavar="T", help="of an MCAP file with several")
    feed.add_argument("--age-ms", type=_age, default=(0.0, 0.0), metavar="MS[,MOST]", help="age when due (default 0)")
    feed.add_argument("--skip-bad", action="store_true", help="count lines that cannot be read instead of ending")
    feed.add_argument("--baud", type=int, metavar="N", help="speed of a serial device (raw, 8 bits, no parity)")
    feed.add_argument("--json", action="store_true", help="the counts as JSON lines on stdout, one a second")
    feed.add_argument("--quiet", "-q", action="store_true", help="no progress, and no last line where all was admitted")


def add_listen(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`node-agent listen`."""
    listen = commands.add_parser(
        "listen", help="print the results of an output as JSON lines", epilog=LISTEN_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    listen.add_argument("output", metavar="OUTPUT", help="the output's name in the query")
    _add_node(listen, "--from")
    listen.add_argument("--count", type=_count, metavar="N", help="end after so many results")
    listen.add_argument(
        "--timeout", type=_between(0.001, 1e6), metavar="S", help="end after so many seconds without a result"
    )
    listen.add_argument("--quiet", "-q", action="store_true", help="results and errors only")


def _add_node(parser: argparse.ArgumentParser, option: str) -> None:
    parser.add_argument(
        option, dest="node", required=True, metavar="NODE",
        help="host:port, the agent's data address; or the node's name in addresses.json",
    )  # fmt: skip
    parser.add_argument(
        "--addresses", type=Path, metavar="FILE",
        help="what `coordinator up` wrote (default, for a name: addresses.json here)",
    )  # fmt: skip
    parser.add_argument(
        "--tls", type=Path, metavar="DIR",
        help="identity for agents that speak TLS, such as certs/client (default: what addresses.json names)",
    )  # fmt: skip
    parser.add_argument(
        "--operators", type=Path, action="append", default=[], metavar="FILE.py",
        help="with the codec of the stream's type, where it is not installed; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--patience", type=_between(0.01, 3600), default=5.0, metavar="S",
        help="seconds that connecting, and an answer, may take (default 5)",
    )  # fmt: skip
    parser.add_argument(
        "--outage", type=_between(0, 1e6), default=60.0, metavar="S",
        help="seconds for which a lost connection is waited for (default 60)",
    )  # fmt: skip


def _between(least: float, most: float) -> Positive:
    def number(text: str) -> float:
        value = float(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text}: between {least:g} and {most:g}")
        return value

    return number


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: 1 or more")
    return value


def _age(text: str) -> tuple[float, float]:
    """(least, most) in ms, of "5" or "0,20"."""
    least, comma, most = text.partition(",")
    ages = float(least), float(most if comma else least)
    if not 0 <= ages[0] <= ages[1] < 1e12:
        raise argparse.ArgumentTypeError(f"{text}: an age of 0 or more, or LEAST,MOST, in ms")
    return ages
