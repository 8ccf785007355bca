"""`node-agent feed`: lines become tuples of a source, paced by a rate, by the times in them, or by the agent."""

import argparse
import contextlib
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from node_agent.client import Admitted, AgentError, NoAnswerError, Source
from node_agent.clock_domain import now_ns
from node_agent.codecs import CodecError, UnknownCodecError
from node_agent.connection import SECOND
from node_agent.lines import CsvRows, JsonRows, LineError, Lines, Rows, format_of
from node_agent.node_address import InputError, client_codecs, data_address
from node_agent.signature import OperatorError

MOST_BURST = 256
MOST_BURST_BYTES = 1 << 20
MOST_REASONS = 8  # told apart in the account
UNITS_NS = {"s": SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}
MILLISECOND = 1_000_000
Gap = Callable[[Any], int]


class Account:
    """What became of the tuples; told on stderr at most once a second."""

    def __init__(self) -> None:
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
            _say(f"{self.sent} sent, {self.admitted} admitted, {self.refused.total()} refused")

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


class Recorded:
    """The gaps of a recording: a time in each value, which never goes back."""

    def __init__(self, field: str, unit_ns: int) -> None:
        self._field, self._unit_ns = field, unit_ns
        self._last_ns: int | None = None
        self._gap_ns = 0

    def gap_ns(self, value: Any) -> int:
        """From the value before. Raises ValueError."""
        at_ns = self._time_ns(value)
        if self._last_ns is not None:
            gap_ns = at_ns - self._last_ns
            if gap_ns < 0:
                raise ValueError(f"{self._field!r} goes back by {-gap_ns / SECOND:g} s; sort the lines by it")
            self._gap_ns = gap_ns
        self._last_ns = at_ns
        return self._gap_ns

    def again(self) -> None:
        """The recording begins anew: its last gap stands before its first value."""
        self._last_ns = None

    def _time_ns(self, value: Any) -> int:
        time_ = value.get(self._field) if isinstance(value, dict) else None
        if isinstance(time_, str) and re.fullmatch(r"-?\d{1,19}", time_, re.ASCII):
            time_ = int(time_)  # 64-bit integers of protobuf messages are text in JSON
        if isinstance(time_, bool) or not isinstance(time_, int | float):
            raise ValueError(f"no number in {self._field!r}, which --by names")
        at_ns = time_ * self._unit_ns
        if not abs(at_ns) < 1 << 63:
            raise ValueError(f"{self._field!r} is too large for a time; name its unit with --unit")
        return round(at_ns)


class Rate:
    """Equal gaps of 1/N s; fractions of a ns are not lost."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._count = 0

    def gap_ns(self, value: Any) -> int:
        """From the value before."""
        self._count += 1
        return round(self._count * SECOND / self._per_second) - round((self._count - 1) * SECOND / self._per_second)

    def again(self) -> None:
        """Nothing changes."""


class Feeder:
    """Takes values, each when it is due, and sends them in bursts."""

    def __init__(self, source: Source, account: Account, age_ms: tuple[float, float]) -> None:
        self._source, self._account, self._age_ms = source, account, age_ms
        self._burst: list[tuple[Any, int]] = []  # with the instant when it was due; 0: when it is sent
        self._bytes = 0
        self._due_ns = 0

    def check(self, value: Any) -> tuple[Any, int]:
        """The value as the stream's type, and its bytes. Raises CodecError."""
        codec = self._source.codec
        typed = codec.from_json(value)
        return typed, len(codec.encode(typed))

    def put(self, value: Any, size: int, gap_ns: int | None, arrived_ns: int) -> None:
        """gap_ns: from when the value before was due; None: at once. A line that arrives later is due then."""
        due_ns = 0
        if gap_ns is not None:
            due_ns = self._due_ns = max(self._due_ns + gap_ns, arrived_ns) if self._due_ns else now_ns()
            if due_ns > now_ns():
                self.send()
                _sleep_until(due_ns)
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
        self._account.progress()


def run(parsed: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    account = Account()
    code = 0
    try:
        _feed(parsed, account)
    except KeyboardInterrupt:
        pass
    except (InputError, OperatorError) as error:
        code = _say(str(error), 2)
    except UnknownCodecError as error:
        code = _say(f"{error}; this command takes --operators FILE.py as well", 2)
    except (AgentError, CodecError) as error:
        code = _say(str(error), 1)
    if account.sent or account.bad or not code:
        _say(account.last_line())
    return code


def _feed(parsed: argparse.Namespace, account: Account) -> None:
    if parsed.unit and parsed.by is None:
        raise InputError(f"--unit {parsed.unit}: is of the field that --by FIELD names")
    address = data_address(parsed.node, parsed.addresses)
    kind = format_of(parsed.input, parsed.format)
    with contextlib.closing(Lines(parsed.input, parsed.baud)) as lines:
        if parsed.repeat and lines.live:
            raise InputError(f"--repeat: {lines.name} cannot be read again; give a file")
        codecs = client_codecs(parsed.operators)
        with Source(address, parsed.source, timeout=parsed.patience, codecs=codecs) as source:
            feeder = Feeder(source, account, parsed.age_ms)
            lines.before_wait = feeder.send
            _rounds(parsed, account, feeder, lines, CsvRows if kind == "csv" else JsonRows)


def _rounds(
    parsed: argparse.Namespace, account: Account, feeder: Feeder, lines: Lines, read: Callable[[Lines], Rows]
) -> None:
    """The lines once, or again and again. Raises InputError after what comes before the bad line has been sent."""
    pace: Recorded | Rate | None = None
    if parsed.by is not None:
        pace = Recorded(parsed.by, UNITS_NS[parsed.unit or "s"])
    elif parsed.rate is not None:
        pace = Rate(parsed.rate)
    try:
        while True:
            _round(feeder, account, lines, read(lines), pace, parsed.skip_bad)
            if not parsed.repeat:
                break
            if not account.sent:
                raise InputError(f"{lines.name}: has no line that can be sent, so there is nothing to repeat")
            lines.rewind()
            if pace is not None:
                pace.again()
    except InputError:
        feeder.send()
        raise


def _round(
    feeder: Feeder, account: Account, lines: Lines, rows: Rows, pace: Recorded | Rate | None, skip_bad: bool
) -> None:
    while True:
        try:
            try:
                value = next(rows)
            except StopIteration:
                break
            where = f"{lines.name}:{rows.number}"
            try:
                typed, size = feeder.check(value)
                gap_ns = pace.gap_ns(value) if pace is not None else None
            except (CodecError, ValueError) as error:
                raise LineError(f"{where}: {error}") from None
        except LineError:
            if not skip_bad:
                raise
            account.bad += 1
            continue
        feeder.put(typed, size, gap_ns, lines.arrived_ns)
    feeder.send()


def _sleep_until(at_ns: int) -> None:
    while (left_ns := at_ns - now_ns()) > 0:
        time.sleep(min(left_ns, 60 * SECOND) / SECOND)


def _say(text: str, code: int = 0) -> int:
    print(f"node-agent feed: {text}", file=sys.stderr, flush=True)  # noqa: T201
    return code
