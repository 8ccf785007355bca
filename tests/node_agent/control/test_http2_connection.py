"""The server's end of HTTP/2 against a client that is written out here, one that breaks rules, and one at random."""

from random import Random

import pytest
from hpack import Decoder
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.control import http2_connection as http2
from node_agent.control.http2_connection import (
    Cancelled,
    Happening,
    Http2Connection,
    Http2Error,
    Opened,
    TooLong,
    Whole,
)
from tests.node_agent.control.http2_client import (
    ACK,
    END_HEADERS,
    END_STREAM,
    INITIAL_WINDOW,
    LARGEST_FRAME,
    PADDED,
    PREFACE,
    PRIORITY_FIELDS,
    Field,
    Frame,
    Kind,
    Reset,
    decoded,
    encoded,
    frame,
    frames,
    rst_stream,
    window_update,
)
from tests.node_agent.control.http2_client import settings as settings_frame
from tests.sampling import examples

MOST_BODY, MOST_FIELDS = 3 << 20, 16 << 10
HELLO = PREFACE + settings_frame()
REQUEST: list[Field] = [
    (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/a"), (b":authority", b"b"), (b"x", b"1"), (b"x", b"2"),
]  # fmt: skip
OK: list[Field] = [(b":status", b"200")]
END: list[Field] = [(b"grpc-status", b"0")]


def connection() -> Http2Connection:
    return Http2Connection(MOST_BODY, MOST_FIELDS)


def opened() -> Http2Connection:
    """After the first words of both."""
    made = connection()
    assert list(made.receive(HELLO)) == []
    made.outgoing()
    return made


def request(stream: int, body: bytes = b"", ends: bool = True) -> bytes:
    head = frame(Kind.HEADERS, END_HEADERS | (0 if body or not ends else END_STREAM), stream, encoded(REQUEST))
    return head + (frame(Kind.DATA, END_STREAM if ends else 0, stream, body) if body else b"")


def sent(made: Http2Connection) -> list[Frame]:
    """The frames that go out."""
    return frames(made.outgoing())


def kinds(made: Http2Connection) -> list[Kind]:
    return [each.kind for each in sent(made)]


def test_a_request_and_its_answer() -> None:
    made = opened()
    fields = {":method": "POST", ":scheme": "http", ":path": "/a", ":authority": "b", "x": "2"}
    assert list(made.receive(request(1, b"body"))) == [Opened(1, fields), Whole(1, b"body")]
    made.respond(1, OK)
    made.send(1, b"one")
    made.finish(1, END)
    head, data, trailers = sent(made)
    decoder = Decoder()
    assert (head.kind, head.flags, decoded(decoder, head.payload)) == (Kind.HEADERS, END_HEADERS, dict(OK))
    assert (data.kind, data.flags, data.payload) == (Kind.DATA, 0, b"one")
    assert (trailers.flags, decoded(decoder, trailers.payload)) == (END_HEADERS | END_STREAM, dict(END))
    made.send(1, b"too late")
    made.finish(1, END)
    assert not made.outgoing() and made.unsent(1) == 0


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
    assert not made.outgoing()


ALL, PING = END_HEADERS, frame(Kind.PING, 0, 0, b"12345678")
MANY = [(b"a%d" % n, b"") for n in range(600)]
BROKEN = {
    "no settings first": (PREFACE + PING, Reset.PROTOCOL_ERROR),
    "a request before settings": (PREFACE + request(1) + settings_frame(), Reset.PROTOCOL_ERROR),
    "a large frame": (HELLO + frame(Kind.DATA, 0, 1, bytes(LARGEST_FRAME + 1)), Reset.FRAME_SIZE_ERROR),
    "settings of a stream": (HELLO + frame(Kind.SETTINGS, 0, 1), Reset.PROTOCOL_ERROR),
    "a window too wide": (HELLO + settings_frame((INITIAL_WINDOW, 1 << 31)), Reset.FLOW_CONTROL_ERROR),
    "a window that grows too wide": (HELLO + window_update(0, (1 << 31) - 1), Reset.FLOW_CONTROL_ERROR),
    "an even stream": (HELLO + request(2), Reset.PROTOCOL_ERROR),
    "data of no stream": (HELLO + frame(Kind.DATA, 0, 1, b"x"), Reset.PROTOCOL_ERROR),
    "fields within a request": (HELLO + request(1, ends=False) + request(1, ends=False), Reset.PROTOCOL_ERROR),
    "nothing to continue": (HELLO + frame(Kind.CONTINUATION, 0, 1, b""), Reset.PROTOCOL_ERROR),
    "a frame within fields": (HELLO + frame(Kind.HEADERS, 0, 1) + PING, Reset.PROTOCOL_ERROR),
    "no header block": (HELLO + frame(Kind.HEADERS, END_HEADERS, 1, b"\x80"), Reset.PROTOCOL_ERROR),
    "no request": (HELLO + frame(Kind.HEADERS, END_HEADERS, 1, encoded(REQUEST[1:])), Reset.PROTOCOL_ERROR),
    "more padding than frame": (HELLO + frame(Kind.HEADERS, ALL | PADDED, 1, b"\x02\x82"), Reset.PROTOCOL_ERROR),
    "many fields": (HELLO + frame(Kind.HEADERS, ALL, 1, encoded(REQUEST + MANY)), Reset.ENHANCE_YOUR_CALM),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_rule_that_is_broken_ends_the_connection(name: str) -> None:
    data, reset = BROKEN[name]
    made = connection()
    with pytest.raises(Http2Error):
        list(made.receive(data))
    *_, last = sent(made)
    assert (last.kind, last.word) == (Kind.GOAWAY, reset)
    made.respond(1, OK)
    made.send(1, b"x")
    made.finish(1, END)
    assert not made.outgoing(), "nothing more is said"


def test_what_is_not_http2_ends_the_connection() -> None:
    with pytest.raises(Http2Error):
        list(connection().receive(b"GET / HTTP/1.1\r\n\r\n"))


def test_a_frame_that_is_too_large_is_not_waited_for_without_end() -> None:
    made, most = opened(), http2.MOST_UNREAD_BYTES // http2.SLICE_BYTES + 1
    with pytest.raises(Http2Error):
        for _ in range(most):
            list(made.receive(b"\xff" * http2.SLICE_BYTES))
    *_, last = sent(made)
    assert (last.kind, last.word) == (Kind.GOAWAY, Reset.ENHANCE_YOUR_CALM)


def test_what_is_no_fault_is_passed_over() -> None:
    """Frames of streams that are over, whose client cannot know it yet."""
    made = opened()
    list(made.receive(request(1, ends=False)))
    made.respond(1, OK, ends=True)
    assert kinds(made) == [Kind.HEADERS, Kind.RST_STREAM]
    late = frame(Kind.DATA, 0, 1, b"x") + window_update(1, 5) + rst_stream(1, Reset.NO_ERROR)
    assert list(made.receive(late)) == []


def test_a_client_that_gives_a_call_up() -> None:
    made = opened()
    list(made.receive(request(1)))
    assert list(made.receive(rst_stream(1, Reset.NO_ERROR))) == [Cancelled(1)]
    made.respond(1, OK)
    assert not made.outgoing()


def test_a_request_that_is_given_up_as_soon_as_it_begins_is_none() -> None:
    made = opened()
    assert list(made.receive(request(1) + rst_stream(1) + request(3))) == [
        Opened(3, {name.decode(): value.decode() for name, value in REQUEST}), Whole(3, b""),
    ]  # fmt: skip


def test_so_many_streams_and_no_more() -> None:
    made = opened()
    numbers = range(1, 2 * http2.MOST_STREAMS, 2)
    assert len(list(made.receive(b"".join(request(each, ends=False) for each in numbers)))) == http2.MOST_STREAMS
    with pytest.raises(Http2Error):
        list(made.receive(request(numbers[-1] + 2)))
    assert kinds(made) == [Kind.GOAWAY]


def test_a_server_that_leaves_answers_what_has_begun_and_nothing_else() -> None:
    made = opened()
    list(made.receive(request(1)))
    made.respond(1, OK)
    made.leave()
    assert list(made.receive(request(3))) == []
    made.send(1, b"one")
    made.finish(1, END)
    assert [(each.kind, each.stream) for each in sent(made)] == [
        (Kind.HEADERS, 1), (Kind.GOAWAY, 0), (Kind.RST_STREAM, 3), (Kind.DATA, 1), (Kind.HEADERS, 1),
    ]  # fmt: skip


def test_a_connection_that_lasts_remembers_few_streams() -> None:
    made = opened()
    for number in range(1, 10_001, 2):
        list(made.receive(request(number)))
        made.respond(number, OK, ends=True)
        made.outgoing()
    assert len(made._h2._closed_streams) <= 1024 and len(made._h2.streams) <= http2.MOST_STREAMS
    assert not made._streams


def upload(made: Http2Connection, size: int) -> list[Happening]:
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
        list(made.receive(PREFACE + settings_frame((INITIAL_WINDOW, initial))))
        made.outgoing()
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
    parts += [
        frame(Kind.PING, 0, 0, b"12345678"),
        rst_stream(3, Reset.NO_ERROR),
        settings_frame(*[(INITIAL_WINDOW, 77)]),
    ]
    for _ in range(random.choice([0, 0, 1, 3])):
        at = random.randrange(1, len(parts))
        damaged = bytearray(parts[at])
        damaged[random.randrange(len(damaged))] = random.randrange(256)
        parts[at] = bytes(damaged)
    return b"".join(parts)


def heard(data: bytes, cuts: list[int]) -> tuple[list[Happening], bytes]:
    made, found = connection(), list[Happening]()
    try:
        for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            found += made.receive(data[begin:end])
    except Http2Error:
        return [], b""
    return found, made.outgoing()


def test_how_bytes_are_cut_changes_nothing(seed: int) -> None:
    """But for streams that are reset, of which more or less has been heard by then."""
    random = Random(seed)
    for _ in range(examples(1000, 20)):
        data = conversation(random)
        cuts = sorted(random.randrange(len(data)) for _ in range(random.randint(1, 30)))
        (cut, out), (whole, whole_out) = heard(data, cuts), heard(data, [])
        given_up = {each.stream for each in cut if isinstance(each, Cancelled)}
        assert [each for each in cut if each.stream not in given_up] == whole and out == whole_out


def answered(made: Http2Connection, happening: Happening) -> None:
    """As calls answer, at once."""
    number = happening.stream
    match happening:
        case Opened() if number % 3 == 0:
            made.respond(number, OK, ends=True)
        case Whole():
            made.respond(number, OK)
            made.send(number, bytes(20_000))
            made.finish(number, END)
        case TooLong():
            made.respond(number, OK, ends=True)


@settings(max_examples=examples(3000, 20))
@given(st.binary(max_size=400))
def test_bytes_of_anybody_end_a_connection_and_nothing_else(data: bytes) -> None:
    made = opened()
    try:
        for each in made.receive(data):
            answered(made, each)
    except Http2Error:
        return
    assert len(made.outgoing()) < 10 * len(data) + 100


words = st.one_of(
    st.builds(request, st.integers(0, 9), st.binary(max_size=30), st.booleans()),
    st.builds(
        frame,
        st.integers(0, 12),
        st.integers(0, 0x3F),
        st.integers(0, 9),
        st.one_of(st.binary(max_size=12), st.just(bytes(5) + encoded(REQUEST)), st.just(encoded(END))),
    ),
    st.builds(window_update, st.integers(0, 9), st.integers(0, 1 << 31)),
    st.builds(rst_stream, st.integers(0, 9)),
    st.builds(lambda size: settings_frame((INITIAL_WINDOW, size)), st.integers(0, 70_000)),
)


@settings(max_examples=examples(5000, 30))
@given(st.lists(words, max_size=25), st.booleans(), st.integers(1, 400))
def test_frames_of_anybody_end_a_connection_and_nothing_else(said: list[bytes], leaves: bool, cut: int) -> None:
    """With answers that are given at once."""
    made, data = connection(), b"".join([HELLO, *said])
    if leaves:
        made.leave()
    try:
        for at in range(0, len(data), cut):
            for each in made.receive(data[at : at + cut]):
                answered(made, each)
    except Http2Error:
        return
    assert frames(made.outgoing())
