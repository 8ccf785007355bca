"""`node-agent feed`: lines, or messages of an MCAP file, become tuples of a source, paced by a rate, by the times in
them, or by the agent."""

import argparse
import contextlib
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from node_agent.client.address_book import InputError, addresses_of, client_codecs, data_address, identity_folder
from node_agent.client.client import Admitted, AgentError, NoAnswerError, Source
from node_agent.client.connection import SECOND
from node_agent.connectors.recordings.mcap_reader import McapReader, Stamps, opened
from node_agent.host.clock import now_ns
from node_agent.operators.codecs import Codec, CodecError, UnknownCodecError
from node_agent.operators.signature import OperatorError
from node_agent.tls.names import TlsError
from node_agent.tools.line_reader import CsvRows, JsonRows, LineError, LineReader, Rows, format_of
from node_agent.tools.pacing import Pacing, Rate, Recorded

MOST_BURST = 256
MOST_BURST_BYTES = 1 << 20
MOST_REASONS = 8  # told apart in the account
UNITS_NS = {"s": SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}
MILLISECOND = 1_000_000
Typed = Callable[[Codec, Any], Any]


class SummaryReport:
    """What became of the tuples; told at most once a second on stderr, or as JSON on stdout. quiet: on
    stderr only at the end, and only where not all was admitted."""

    def __init__(self, as_json: bool = False, quiet: bool = False) -> None:
        self._as_json, self._quiet = as_json, quiet
        self.sent = self.admitted = self.bad = 0
        self.refused: Counter[str] = Counter()
        self._examples: dict[str, str] = {}  # reasons that differ in numbers only are one
        self._told_ns = now_ns()

    def add(self, outcomes: Iterable[Any]) -> None:
        """Outcomes of a burst; None where nothing is known."""
        for outcome in outcomes:
            if isinstance(outcome, Admitted):
                self.admitted += 1
            elif outcome is not None:
                kind = re.sub(r"\d+(\.\d+)?", "#", outcome.why)
                if kind not in self._examples and len(self._examples) >= MOST_REASONS:
                    kind = "other reasons"
                self.refused[self._examples.setdefault(kind, kind if kind == "other reasons" else outcome.why)] += 1

    def progress(self) -> None:
        """One line, where the last one is a second ago."""
        if now_ns() - self._told_ns >= SECOND:
            self._told_ns = now_ns()
            if self._as_json:
                self._print()
            elif not self._quiet:
                _say(f"{self.sent} sent, {self.admitted} admitted, {self.refused.total()} refused")

    def end(self) -> None:
        """The last word."""
        if self._as_json:
            self._print()
        elif not self._quiet or self.admitted < self.sent or self.bad:
            _say(self.last_line())

    def _print(self) -> None:
        values = {"sent": self.sent, "admitted": self.admitted, "refused": dict(self.refused), "bad": self.bad}
        print(json.dumps(values), flush=True)  # noqa: T201

    def last_line(self) -> str:
        """sent, admitted, refused by reason, and what else there is to say."""
        refused = self.refused.total()
        unknown = self.sent - self.admitted - refused
        why = "; ".join(f"{count} x {reason}" for reason, count in self.refused.most_common())
        return (
            f"{self.sent} sent, {self.admitted} admitted, {refused} refused"
            + (f" ({why})" if why else "")
            + (f", {unknown} without an answer" if unknown else "")
            + (f", {self.bad} bad lines skipped" if self.bad else "")
        )


class Feeder:
    """Takes values, each when it is due, and sends them in bursts. steady: the gap before a value counts from when the
    one before was taken over, so that a delay is never made up for."""

    def __init__(
        self,
        source: Source,
        report: SummaryReport,
        age_ms: tuple[float, float],
        steady: bool = False,
        typed: Typed | None = None,
    ) -> None:
        self._source, self._account, self._age_ms, self._steady = source, report, age_ms, steady
        self._typed = typed or _from_json
        self._burst: list[tuple[Any, int]] = []  # with the instant when it was due; 0: when it is sent
        self._bytes = 0
        self._due_ns = 0

    def check(self, value: Any) -> tuple[Any, int]:
        """The value as the stream's type, and its bytes. Raises CodecError."""
        codec = self._source.codec
        typed = self._typed(codec, value)
        return typed, len(codec.encode(typed))

    def put(self, value: Any, size: int, gap_ns: int | None, arrived_ns: int) -> None:
        """gap_ns: from when the value before was due; None: at once. A line that arrives later is due then."""
        due_ns = 0
        if self._steady:
            self.send()
        if gap_ns is not None:
            due_ns = self._due_ns = max(self._due_ns + gap_ns, arrived_ns) if self._due_ns else now_ns()
            if due_ns > now_ns():
                self.send()
                _sleep_until(due_ns)
            if self._steady:
                due_ns = now_ns()
        self._burst.append((value, due_ns))
        self._bytes += size
        if len(self._burst) >= MOST_BURST or self._bytes >= MOST_BURST_BYTES:
            self.send()

    def send(self) -> None:
        """What waits. Raises AgentError."""
        burst, self._burst, self._bytes = self._burst, [], 0
        if not burst:
            return
        least_ms, most_ms = self._age_ms
        aged = []
        for value, due_ns in burst:
            late_ms = max(0, now_ns() - due_ns) / MILLISECOND if due_ns else 0.0
            aged.append((value, (least_ms + late_ms, most_ms + late_ms)))
        self._account.sent += len(burst)
        try:
            self._account.add(self._source.send_aged(aged))
        except NoAnswerError as error:
            self._account.add(error.results)
            raise
        if self._steady:
            self._due_ns = now_ns()
        self._account.progress()


def run(parsed: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    report = SummaryReport(parsed.json, parsed.quiet)
    code = 0
    try:
        _feed(parsed, report)
    except KeyboardInterrupt:
        pass
    except (InputError, OperatorError, TlsError) as error:
        code = _say(str(error), 2)
    except UnknownCodecError as error:
        code = _say(f"{error}; this command takes --operators FILE.py as well", 2)
    except (AgentError, CodecError) as error:
        code = _say(str(error), 1)
    if report.sent or report.bad or not code:
        report.end()
    return code


def _feed(parsed: argparse.Namespace, report: SummaryReport) -> None:
    kind = format_of(parsed.input, parsed.format)
    _check(parsed, kind)
    addresses = addresses_of(parsed.node, parsed.addresses)
    address, tls = data_address(parsed.node, addresses), identity_folder(parsed.tls, addresses)
    with contextlib.closing(_input(parsed, kind)) as given:
        if parsed.repeat and given.live:
            text = f"--repeat: {given.name} cannot be read again"
            raise InputError("not_repeatable", text, "give a file", subject="--repeat")
        codecs = client_codecs(parsed.operators)
        waits = {"timeout": parsed.patience, "outage": parsed.outage}
        with Source(address, parsed.source, **waits, on_outage=_say, codecs=codecs, tls=tls) as source:
            typed = given.typed if isinstance(given, McapReader) else None
            feeder = Feeder(source, report, parsed.age_ms, parsed.steady, typed)
            given.before_wait = feeder.send
            _rounds(parsed, report, feeder, given, kind)


def _check(parsed: argparse.Namespace, kind: str) -> None:
    """Options that do not go together. Raises InputError."""
    if parsed.unit and (parsed.by is None or kind == "mcap"):
        raise InputError(
            "option_apart", f"--unit {parsed.unit}: is of the field that --by FIELD names", subject="--unit"
        )
    if parsed.topic is not None and kind != "mcap":
        raise InputError("option_apart", f"--topic {parsed.topic}: is of an MCAP file", subject="--topic")
    if parsed.baud is not None and kind == "mcap":
        raise InputError("not_serial", f"--baud: {parsed.input} is not a serial device", subject="--baud")
    if parsed.steady and parsed.rate is None and parsed.by is None and kind != "mcap":
        raise InputError("option_apart", "--steady: keeps the gaps that --rate or --by gives", subject="--steady")


def _input(parsed: argparse.Namespace, kind: str) -> LineReader | McapReader:
    return opened(parsed.input, parsed.topic, parsed.by) if kind == "mcap" else LineReader(parsed.input, parsed.baud)


def _pace(parsed: argparse.Namespace, given: LineReader | McapReader) -> Pacing | None:
    if parsed.rate is not None:
        return Rate(parsed.rate)
    if isinstance(given, McapReader):
        return Stamps(given)
    return Recorded(parsed.by, UNITS_NS[parsed.unit or "s"]) if parsed.by is not None else None


def _rounds(
    parsed: argparse.Namespace, report: SummaryReport, feeder: Feeder, given: LineReader | McapReader, kind: str
) -> None:
    """The input once, or again and again. Raises InputError after what comes before the bad line has been sent."""
    pacing = _pace(parsed, given)
    try:
        while True:
            _round(feeder, report, given, _rows(given, kind), pacing, parsed.skip_bad)
            if not parsed.repeat:
                break
            if not report.sent:
                text = "has no line that can be sent, so there is nothing to repeat"
                raise InputError("nothing_to_repeat", text, subject="--repeat", file=given.name)
            given.rewind()
            if pacing is not None:
                pacing.again()
    except InputError:
        feeder.send()
        raise


def _rows(given: LineReader | McapReader, kind: str) -> Rows:
    if isinstance(given, McapReader):
        return given
    return CsvRows(given) if kind == "csv" else JsonRows(given)


def _round(
    feeder: Feeder,
    report: SummaryReport,
    lines: LineReader | McapReader,
    rows: Rows,
    pacing: Pacing | None,
    skip_bad: bool,
) -> None:
    while True:
        try:
            try:
                value = next(rows)
            except StopIteration:
                break
            try:
                typed, size = feeder.check(value)
                gap_ns = pacing.gap_ns(value) if pacing is not None else None
            except (CodecError, ValueError) as error:
                raise _unsent(error, lines.name, rows.number) from None
        except LineError:
            if not skip_bad:
                raise
            report.bad += 1
            continue
        feeder.put(typed, size, gap_ns, lines.arrived_ns)
    feeder.send()


def _unsent(error: CodecError | ValueError, name: str, number: int) -> LineError:
    """What keeps a line from being sent: a value that is none of the stream's type, or that has no time."""
    if isinstance(error, CodecError):
        return LineError(error.code, str(error), subject=error.mistake.subject, file=name, line=number)
    return LineError("no_time", str(error), subject="--by", file=name, line=number)


def _from_json(codec: Codec, value: Any) -> Any:
    return codec.from_json(value)


def _sleep_until(at_ns: int) -> None:
    while (left_ns := at_ns - now_ns()) > 0:
        time.sleep(min(left_ns, 60 * SECOND) / SECOND)


def _say(text: str, code: int = 0) -> int:
    print(f"node-agent feed: {text}", file=sys.stderr, flush=True)  # noqa: T201
    return code
