"""The server's end of HTTP/2 against a client that is written out here, one that breaks rules, and one at random."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.control.http2 import http2_connection as http2
from node_agent.control.http2.header_fields import Field, FieldDecoder, encoded
from node_agent.control.http2.http2_connection import Cancelled, Event, Http2Connection, Opened, TooLong, Whole
from node_agent.control.http2.http2_frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
    LARGEST_FRAME,
    PADDED,
    PREFACE,
    PRIORITY_FIELDS,
    Frame,
    Http2Error,
    Kind,
    Reset,
    Setting,
    frame,
    rst_stream,
    window_update,
)
from node_agent.control.http2.http2_frames import settings as settings_frame
from tests.sampling import examples

MOST_BODY, MOST_FIELDS = 3 << 20, 16 << 10
HELLO = PREFACE + settings_frame()
REQUEST: list[Field] = [(b":method", b"POST"), (b":path", b"/a"), (b"x", b"1"), (b"x", b"2")]
OK: list[Field] = [(b":status", b"200")]
END: list[Field] = [(b"grpc-status", b"0")]


def connection() -> Http2Connection:
    return Http2Connection(MOST_BODY, MOST_FIELDS)


def opened() -> Http2Connection:
    """After the first words of both."""
    made = connection()
    assert list(made.receive(HELLO)) == []
    made.outgoing.clear()
    return made


def request(stream: int, body: bytes = b"", ends: bool = True) -> bytes:
    head = frame(Kind.HEADERS, END_HEADERS | (0 if body or not ends else END_STREAM), stream, encoded(REQUEST))
    return head + (frame(Kind.DATA, END_STREAM if ends else 0, stream, body) if body else b"")


def sent(made: Http2Connection) -> list[Frame]:
    """The frames that go out, cut without the code that is under test."""
    data, found = bytes(made.outgoing), []
    made.outgoing.clear()
    while data:
        size = int.from_bytes(data[:3])
        found.append(Frame(data[3], data[4], int.from_bytes(data[5:9]), data[9 : 9 + size]))
        data = data[9 + size :]
    return found


def kinds(made: Http2Connection) -> list[Kind]:
    return [Kind(each.kind) for each in sent(made)]


def test_a_request_and_its_answer() -> None:
    made = opened()
    fields = {":method": "POST", ":path": "/a", "x": "2"}
    assert list(made.receive(request(1, b"body"))) == [Opened(1, fields), Whole(1, b"body")]
    made.respond(1, OK)
    made.send(1, b"one")
    made.finish(1, END)
    head, data, trailers = sent(made)
    decoder = FieldDecoder(MOST_FIELDS)
    assert (head.kind, head.flags, decoder.fields(head.payload)) == (Kind.HEADERS, END_HEADERS, OK)
    assert (data.kind, data.flags, data.payload) == (Kind.DATA, 0, b"one")
    assert (trailers.flags, decoder.fields(trailers.payload)) == (END_HEADERS | END_STREAM, END)
    made.send(1, b"too late")
    made.finish(1, END)
    assert not made.outgoing and made.unsent(1) == 0


def test_padding_priority_continuation_and_trailers() -> None:
    made, block = opened(), encoded(REQUEST)
    data = (
        frame(Kind.HEADERS, PADDED | PRIORITY_FIELDS, 1, b"\x02" + b"\x00" * 5 + block[:3] + b"\x00\x00")
        + frame(Kind.CONTINUATION, 0, 1, block[3:9])
        + frame(Kind.CONTINUATION, END_HEADERS, 1, block[9:])
        + frame(Kind.DATA, PADDED, 1, b"\x03abc\x00\x00\x00")
        + frame(Kind.PRIORITY, 0, 1, b"\x00" * 5)
        + b"\x00\x00\x02\x77\x00\x00\x00\x00\x01??"  # of a kind that nobody knows
        + frame(Kind.HEADERS, END_HEADERS | END_STREAM, 1, encoded([(b"checksum", b"1")]))
    )
    assert [type(each) for each in made.receive(data)] == [Opened, Whole]
    assert list(made.receive(b"")) == []


def test_a_ping_and_settings_are_acknowledged() -> None:
    made = opened()
    list(made.receive(frame(Kind.PING, 0, 0, b"12345678") + frame(Kind.PING, ACK, 0, b"12345678") + settings_frame()))
    assert [(each.kind, each.flags, each.payload) for each in sent(made)] == [
        (Kind.PING, ACK, b"12345678"), (Kind.SETTINGS, ACK, b""),
    ]  # fmt: skip
    list(made.receive(frame(Kind.SETTINGS, ACK, 0)))
    assert not made.outgoing


ALL, PING = END_HEADERS, frame(Kind.PING, 0, 0, b"12345678")
MORE_FIELDS = frame(Kind.CONTINUATION, 0, 1, b"x" * 16000)
BROKEN = {
    "not http/2": (b"GET / HTTP/1.1\r\n\r\n", Reset.PROTOCOL_ERROR),
    "no settings first": (PREFACE + frame(Kind.PING, 0, 0, b"12345678"), Reset.PROTOCOL_ERROR),
    "a large frame": (HELLO + (LARGEST_FRAME + 1).to_bytes(3) + b"\0" * 6, Reset.FRAME_SIZE_ERROR),
    "half a setting": (HELLO + frame(Kind.SETTINGS, 0, 0, b"12345"), Reset.FRAME_SIZE_ERROR),
    "settings of a stream": (HELLO + frame(Kind.SETTINGS, 0, 1), Reset.PROTOCOL_ERROR),
    "a window too wide": (HELLO + settings_frame((Setting.INITIAL_WINDOW_SIZE, 1 << 31)), Reset.FLOW_CONTROL_ERROR),
    "a window that grows too wide": (HELLO + window_update(0, (1 << 31) - 1), Reset.FLOW_CONTROL_ERROR),
    "a window of nothing": (HELLO + window_update(0, 0), Reset.FLOW_CONTROL_ERROR),
    "a short window": (HELLO + frame(Kind.WINDOW_UPDATE, 0, 0, b"123"), Reset.FRAME_SIZE_ERROR),
    "a short ping": (HELLO + frame(Kind.PING, 0, 0, b"1234567"), Reset.FRAME_SIZE_ERROR),
    "an even stream": (HELLO + request(2), Reset.PROTOCOL_ERROR),
    "stream 0": (HELLO + request(0), Reset.PROTOCOL_ERROR),
    "data of no stream": (HELLO + frame(Kind.DATA, 0, 1, b"x"), Reset.PROTOCOL_ERROR),
    "an end of no stream": (HELLO + rst_stream(1, Reset.NO_ERROR), Reset.PROTOCOL_ERROR),
    "data after the end": (HELLO + request(1) + frame(Kind.DATA, 0, 1, b"x"), Reset.STREAM_CLOSED),
    "fields within a request": (HELLO + request(1, ends=False) + request(1, ends=False), Reset.PROTOCOL_ERROR),
    "a promise": (HELLO + frame(Kind.PUSH_PROMISE, 0, 1, b"1234"), Reset.PROTOCOL_ERROR),
    "nothing to continue": (HELLO + frame(Kind.CONTINUATION, 0, 1, b""), Reset.PROTOCOL_ERROR),
    "a frame within fields": (HELLO + frame(Kind.HEADERS, 0, 1) + PING, Reset.PROTOCOL_ERROR),
    "no header block": (HELLO + frame(Kind.HEADERS, END_HEADERS, 1, b"\x80"), Reset.COMPRESSION_ERROR),
    "more padding than frame": (HELLO + frame(Kind.HEADERS, ALL | PADDED, 1, b"\x02\x82"), Reset.PROTOCOL_ERROR),
    "fields without end": (HELLO + frame(Kind.HEADERS, 0, 1) + MORE_FIELDS * 2, Reset.ENHANCE_YOUR_CALM),
    "many fields": (HELLO + frame(Kind.HEADERS, ALL, 1, encoded([(b"a", b"")] * 600)), Reset.ENHANCE_YOUR_CALM),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_rule_that_is_broken_ends_the_connection(name: str) -> None:
    data, reset = BROKEN[name]
    with pytest.raises(Http2Error) as raised:
        list(connection().receive(data))
    assert raised.value.code is reset


def test_what_is_no_fault_is_passed_over() -> None:
    """Frames of streams that are over, whose client cannot know it yet."""
    made = opened()
    list(made.receive(request(1, ends=False)))
    made.respond(1, OK, ends=True)
    assert kinds(made) == [Kind.HEADERS, Kind.RST_STREAM]
    late = frame(Kind.DATA, 0, 1, b"x") + window_update(1, 5) + rst_stream(1, Reset.NO_ERROR) + request(1)
    assert list(made.receive(late)) == []


def test_a_client_that_gives_a_call_up() -> None:
    made = opened()
    list(made.receive(request(1)))
    assert list(made.receive(rst_stream(1, Reset.NO_ERROR))) == [Cancelled(1)]
    made.respond(1, OK)
    assert not made.outgoing


def test_so_many_streams_and_no_more() -> None:
    made = opened()
    numbers = range(1, 2 * http2.MOST_STREAMS, 2)
    assert len(list(made.receive(b"".join(request(each, ends=False) for each in numbers)))) == http2.MOST_STREAMS
    assert list(made.receive(request(numbers[-1] + 2))) == [] and kinds(made) == [Kind.RST_STREAM]
    made.leave()
    list(made.receive(rst_stream(1, Reset.NO_ERROR) + request(numbers[-1] + 4)))
    assert kinds(made) == [Kind.GOAWAY, Kind.RST_STREAM], "and none where the server leaves"


def upload(made: Http2Connection, size: int) -> list[Event]:
    """A body of that size, in the largest frames that the windows take."""
    found = list(made.receive(request(1, ends=False)))
    windows = {0: http2.WINDOW, 1: http2.WINDOW}
    while size > 0 and not any(isinstance(each, TooLong) for each in found):
        part = min(size, LARGEST_FRAME, *windows.values())
        assert part > 0, "the client cannot go on"
        size -= part
        windows = {stream: window - part for stream, window in windows.items()}
        found += made.receive(frame(Kind.DATA, 0 if size else END_STREAM, 1, b"x" * part))
        for each in sent(made):
            if each.kind == Kind.WINDOW_UPDATE:
                windows[each.stream] += each.word
    assert max(windows.values()) <= http2.WINDOW
    return found


def test_a_body_as_large_as_may_be() -> None:
    *_, whole = upload(opened(), MOST_BODY)
    assert isinstance(whole, Whole) and len(whole.body) == MOST_BODY


def test_a_body_that_is_too_large_is_known_before_it_is_whole() -> None:
    assert upload(opened(), 2 * MOST_BODY)[-1] == TooLong(1)


def test_answers_keep_to_the_clients_windows(seed: int) -> None:
    """Several at once, into windows that open now and then: each comes whole, in order, and never more than may be."""
    random = Random(seed)
    for _ in range(examples(400, 20)):
        made, initial = connection(), random.choice([0, 1, 10, 1000, 65_535])
        list(made.receive(PREFACE + settings_frame((Setting.INITIAL_WINDOW_SIZE, initial))))
        made.outgoing.clear()
        answers = {2 * n + 1: random.randbytes(random.choice([0, 5, 300, 40_000])) for n in range(random.randint(1, 4))}
        windows = {0: 65_535} | dict.fromkeys(answers, initial)
        for number, answer in answers.items():
            list(made.receive(request(number)))
            made.respond(number, OK)
            cut = random.randint(0, len(answer))
            made.send(number, answer[:cut])
            made.send(number, answer[cut:])
            made.finish(number, END)
        got, over = dict.fromkeys(answers, b""), set[int]()
        while len(over) < len(answers):
            for each in sent(made):
                if each.kind == Kind.DATA:
                    assert each.stream not in over and 0 < len(each.payload) <= LARGEST_FRAME
                    got[each.stream] += each.payload
                    windows[0] -= len(each.payload)
                    windows[each.stream] -= len(each.payload)
                    assert min(windows[0], windows[each.stream]) >= 0
                elif each.flags & END_STREAM:
                    over.add(each.stream)
            number, more = random.choice([0, *answers]), random.choice([1, 7, 5000, 60_000])
            windows[number] += more
            list(made.receive(window_update(number, more)))
        assert got == answers


def conversation(random: Random) -> bytes:
    """Frames of a client, some of which are damaged or in no order."""
    parts = [HELLO]
    for number in range(1, 9, 2):
        parts += [request(number, random.randbytes(random.choice([0, 3, 2000]))), window_update(number, 9)]
    parts += [frame(Kind.PING, 0, 0, b"12345678"), rst_stream(3, Reset.NO_ERROR), settings_frame(*[(Setting(4), 77)])]
    for _ in range(random.choice([0, 0, 1, 3])):
        at = random.randrange(1, len(parts))
        damaged = bytearray(parts[at])
        damaged[random.randrange(len(damaged))] = random.randrange(256)
        parts[at] = bytes(damaged)
    return b"".join(parts)


def heard(data: bytes, cuts: list[int]) -> tuple[list[Event], Reset | None, bytes]:
    made, found = connection(), list[Event]()
    try:
        for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            for event in made.receive(data[begin:end]):
                found.append(event)
    except Http2Error as error:
        return found, error.code, b""
    return found, None, bytes(made.outgoing)


def test_how_bytes_are_cut_changes_nothing(seed: int) -> None:
    random = Random(seed)
    for _ in range(examples(2000, 20)):
        data = conversation(random)
        cuts = sorted(random.randrange(len(data)) for _ in range(random.randint(1, 30)))
        assert heard(data, cuts) == heard(data, [])


@settings(max_examples=examples(5000, 20))
@given(st.binary(max_size=400))
def test_bytes_of_anybody_end_a_connection_and_nothing_else(data: bytes) -> None:
    made = opened()
    try:
        list(made.receive(data))
    except Http2Error:
        return
    assert len(made.outgoing) < 10 * len(data) + 100
