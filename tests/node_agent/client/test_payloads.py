"""Columns as tuples: what is written of a row is what its dictionary gives, and what is no value is refused whole."""

from array import array
from typing import Any

import numpy
import pandas
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.client.origins import MOST_AGE_MS, interval, origin, origins
from node_agent.client.payloads import payloads
from node_agent.link.clock_offset import FAR_NS
from node_agent.operators.codecs import JSON, CodecError, Codecs
from node_agent.problems import ProblemError
from node_agent.wire import frames
from protos.vehicle_pb2 import Ego
from tests.sentences import Wording

SAID = Wording("feed", "columns")
BYTES, NUMPY, ARROW = (Codecs().get(name) for name in ("bytes", "numpy", "arrow"))
MESSAGE = Codecs({"t.Ego": Ego}).get("t.Ego")

COLUMN = st.sampled_from([
    st.booleans(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**63), 2**63 - 1),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.floats(width=32, allow_nan=False, allow_infinity=False), st.lists(st.integers(0, 9), max_size=3),
])  # fmt: skip
NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[Any]]:
    names = draw(st.lists(NAME, min_size=1, max_size=4, unique=True))
    size = draw(st.integers(0, 6))
    return {name: draw(st.lists(draw(COLUMN), min_size=size, max_size=size)) for name in names}


def rows_of(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@given(tables())
def test_a_row_is_written_as_its_dictionary_is(columns: dict[str, list[Any]]) -> None:
    expected = [JSON.encode(row) for row in rows_of(columns)]
    assert payloads(columns, JSON) == expected
    table = pyarrow.table(columns)
    assert payloads(table, JSON) == [JSON.encode(row) for row in table.to_pylist()] == expected
    assert [each for batch in table.to_batches() for each in payloads(batch, JSON)] == expected
    assert payloads(pandas.DataFrame(columns), JSON) == expected


@given(st.lists(st.tuples(st.integers(0, 255), st.floats(width=32, allow_nan=False, allow_infinity=False))))
def test_an_array_of_records_is_a_table(rows: list[tuple[int, float]]) -> None:
    records = numpy.array(rows, dtype=[("id", "u1"), ("kg", "f4")])
    expected = [JSON.encode({"id": row[0], "kg": row[1]}) for row in records.tolist()]
    assert payloads(records, JSON) == expected


@pytest.mark.parametrize("values", [
    numpy.arange(4) * 0.5, numpy.arange(6, dtype="u1").reshape(3, 2), numpy.array(["a", '"%s"', "ü"]),
    numpy.array([True, False]), numpy.zeros((0, 3)), array("d", [1, 2.5]), memoryview(b"ab"), pandas.Series([1.5, 2]),
    pyarrow.array(["a", "b"]), pyarrow.chunked_array([[1], [2, 3]]), pandas.Series(["a", "b"], dtype="category"),
    numpy.array([1, "a", 2.5, [1]], dtype=object), numpy.array([1.5, -2], "f2"),
    pandas.Series([0, 0, 7], dtype="Sparse[int]"),
    numpy.array([numpy.int64(1), numpy.float32(0.5)], dtype=object), numpy.ma.masked_array([1, 2], [False, False]),
])  # fmt: skip
def test_an_array_has_a_tuple_per_item_of_its_first_axis(values: Any) -> None:
    plain = values.tolist() if hasattr(values, "tolist") else values.to_pylist()
    assert payloads(values, JSON) == [JSON.encode(each) for each in plain]


def test_what_is_no_array_is_values_one_by_one() -> None:
    values = [1, {"a": None}, "x", [numpy.float32(0.5)]]
    assert payloads(values, JSON) == payloads(iter(values), JSON) == [JSON.encode(each) for each in values]
    assert payloads("ab", JSON) == [b'"a"', b'"b"']


def test_a_list_or_range_may_be_a_column_as_it_is() -> None:
    columns = {"a": range(2), "b": [numpy.int64(5), numpy.float32(0.5)], "c": [1, None]}
    assert payloads(columns, JSON) == [b'{"a":0,"b":5,"c":1}', b'{"a":1,"b":0.5,"c":null}']


def test_the_type_of_the_source_says_what_an_item_is() -> None:
    pictures = numpy.arange(12, dtype="u1").reshape(3, 2, 2)
    assert payloads(pictures, NUMPY) == [NUMPY.encode(each) for each in pictures]
    assert payloads(pictures, BYTES) == [each.tobytes() for each in pictures]
    assert payloads(pyarrow.array([b"a\0", b""]), BYTES) == [b"a\0", b""]
    batches = pyarrow.table({"a": [1, 2]}).to_batches()
    assert payloads(batches, ARROW) == [ARROW.encode(each) for each in batches]
    vehicles = payloads({"station": numpy.array([1, 2]), "length_m": numpy.array([4.5, 5])}, MESSAGE)
    assert [MESSAGE.decode(each) for each in vehicles] == [Ego(station=1, length_m=4.5), Ego(station=2, length_m=5)]


NAN = float("nan")


@pytest.mark.parametrize(("values", "fault"), [
    ({"a": [1, 2], "b": numpy.array([1])}, "other_length b"),
    ({"a": numpy.array([1.0, NAN])}, "null a"),
    (pyarrow.table({"a": [1, None]}), "null a"),
    (pandas.DataFrame({"a": pandas.array([1, None], dtype="Int64")}), "null a"),
    ({"a": numpy.ma.masked_array([1, 2], [False, True])}, "null a"),
    (numpy.array([1.0, float("inf")]), "null"),
    ({"t": numpy.array(["2026-01-01"], "M8[ns]")}, "unsupported t"),
    ({"t": numpy.array([1], "m8[s]")}, "unsupported t"),
    (pyarrow.table({"t": pyarrow.array([1], pyarrow.timestamp("ns"))}), "unsupported t"),
    ({"a": numpy.array([b"a"])}, "unsupported a"),
    ({"a": numpy.array([1j])}, "unsupported a"),
    ({"a": numpy.longdouble([1])}, "unsupported a"),
    ({"a": 5}, "unsupported a"),
    ({"a": "text"}, "unsupported a"),
    ({"a": {"b": [1]}}, "unsupported a"),
    ({1: [1]}, "unsupported 1"),
    (numpy.float64(1), "unsupported"),
    (pandas.DataFrame([[1, 2]], columns=["a", "a"]), "given_twice a"),
], ids=str)  # fmt: skip
def test_columns_that_are_no_values_are_refused(values: Any, fault: str) -> None:
    with SAID.refuses(fault, worded=False, kind=ValueError):
        payloads(values, JSON)


@pytest.mark.parametrize(("values", "codec", "fault"), [
    (pyarrow.table({"a": [1]}), ARROW, "other_type arrow"),
    ({"a": [1]}, BYTES, "other_type bytes"),
    (numpy.zeros((2, 2)), BYTES, "other_type bytes"),
], ids=["arrow", "bytes", "floats"])  # fmt: skip
def test_a_table_is_of_json_or_messages(values: Any, codec: Any, fault: str) -> None:
    with SAID.refuses(fault, kind=ValueError):
        payloads(values, codec)


MASK = [[False, False], [False, True]]


@pytest.mark.parametrize(("values", "codec", "fault"), [
    (numpy.ma.masked_array([[1, 2], [3, 4]], MASK), NUMPY, "null"),
    (numpy.ma.masked_array([[1, 2], [3, 4]], MASK, "u1"), BYTES, "null"),
    (numpy.ma.masked_array([1, 2], [False, True], "u1"), BYTES, "null"),
    (numpy.ma.masked_array([[1, 2], [3, 4]], MASK), JSON, "null"),
    ({"a": numpy.ma.masked_array([[1, 2], [3, 4]], MASK)}, JSON, "null a"),
    ([numpy.ma.masked_array([1, 2], [False, True])], NUMPY, "not_encoded numpy"),
    (memoryview(b"abcd").cast("B", (2, 2)), BYTES, "other_type bytes"),
    (numpy.array(5, "u1"), NUMPY, "unsupported"), (numpy.array(5, "u1"), BYTES, "unsupported"),
    (numpy.array(5), JSON, "unsupported"), (None, JSON, "unsupported"), (5, NUMPY, "unsupported"),
])  # fmt: skip
def test_what_hides_values_or_has_none_is_refused(values: Any, codec: Any, fault: str) -> None:
    with SAID.refuses(fault, worded=False, kind=ProblemError):
        payloads(values, codec)


def test_masks_that_hide_nothing_are_sent() -> None:
    plain = numpy.arange(4, dtype="u1").reshape(2, 2)
    for open_ in (numpy.ma.masked_array(plain), numpy.ma.masked_array(plain, numpy.zeros((2, 2), bool))):
        assert payloads(open_, NUMPY) == payloads(plain, NUMPY)
        assert payloads(open_, BYTES) == payloads(plain, BYTES)


def test_a_stream_without_columns_has_to_be_made_a_table() -> None:
    class Stream:
        def __arrow_c_stream__(self, schema: object = None) -> object: ...

    with SAID.refuses("unsupported", kind=ValueError):
        payloads(Stream(), JSON)


@pytest.mark.parametrize("values", [
    {"a": ["\ud800"]}, {"a": [NAN]}, {"a": [10**5000]}, {"a": [{1: 2}]}, {"a": [b"x"]}, [NAN], {"a": ["x" * 2_000_000]},
], ids=["half", "nan", "digits", "key", "bytes", "value", "large"])  # fmt: skip
def test_what_a_dictionary_could_not_be_a_row_cannot_be(values: Any) -> None:
    with pytest.raises(CodecError):
        payloads(values, JSON)


def test_a_row_is_as_large_as_the_query_allows() -> None:
    small = Codecs().get("json", 12)
    assert payloads({"a": ["xxxx"]}, small) == [b'{"a":"xxxx"}']
    with SAID.refuses("too_large json"):
        payloads({"a": ["x", "xxxxx"]}, small)


def test_origins_by_column() -> None:
    ns = numpy.array([5, 7], "i8")
    assert list(origins(100, 2, 0.0, ns)) == [(5, 5), (7, 7)]
    assert list(origins(100, 2, 0.0, (ns, ns + 3))) == [(5, 8), (7, 10)]
    assert list(origins(10**7, 2, numpy.array([1.0, 2.5]), None)) == [(9_000_000,) * 2, (7_500_000,) * 2]
    assert list(origins(10**7, 2, [1, (1, 2)], None)) == [(9_000_000,) * 2, (8_000_000, 9_000_000)]
    for age in (numpy.int64(1), numpy.int8(1), numpy.float16(1), numpy.array(1), numpy.array(1.0), True):
        assert list(origins(10**7, 2, age, None)) == [(9_000_000,) * 2] * 2
    assert list(origins(10**7, 2, range(2), None)) == [(10**7,) * 2, (9_000_000,) * 2]
    assert list(origins(100, 2, 0.0, range(5, 7))) == list(origins(100, 2, 0.0, list(numpy.arange(5, 7)))) == [
        (5, 5), (6, 6),
    ]  # fmt: skip


@pytest.mark.parametrize(("age_ms", "origin_ns", "fault"), [
    (0.0, numpy.array([1, 2, 3]), "other_length origin_ns"),
    (numpy.array([1.0]), None, "other_length age_ms"),
    (0.0, numpy.array([1.0, 2.0]), "bad_origin origin_ns"),
    (0.0, numpy.array(["2026-01-01"] * 2, "M8[ns]"), "unsupported origin_ns"),
    (0.0, numpy.array([2**63, 1], "u8"), "bad_origin origin_ns"),
    (0.0, ([3, 4], [3, 3]), "bad_origin origin_ns 2"),
    (5.0, numpy.array([1, 2]), "given_twice origin_ns"),
    ([1, -1], None, "bad_age age_ms"),
    *((age, None, "bad_age age_ms") for age in (None, "5", (1,), (1, 2, 3), (2, 1), float("nan"), float("inf"), 1j)),
    ([None, 1], None, "bad_age age_ms"),
    (iter("ab"), None, "bad_age age_ms"),
    (numpy.ones((2, 2)), None, "bad_age age_ms"),
    (1e30, None, "bad_origin age_ms"), ((0, 10**400), None, "bad_origin age_ms"),
    ([1, 1e30], None, "bad_origin age_ms"),
    *((0.0, given, "bad_origin origin_ns") for given in (([1, 2],), ([1, 2],) * 3, [True, 1], [[1], [2]], [1, None])),
    (0.0, 5, "unsupported origin_ns"),
])  # fmt: skip
def test_origins_that_cannot_be_are_refused(age_ms: Any, origin_ns: Any, fault: str) -> None:
    with SAID.refuses(fault.removesuffix(" 2"), worded=False, kind=ValueError):
        list(origins(100, 2, age_ms, origin_ns))


@pytest.mark.parametrize(
    "given", [(1,), (1, 2, 3), (2, 1), (1.0, 2.0), None, 5, (0, FAR_NS + 1), (-FAR_NS - 1, 0)], ids=str
)
def test_an_interval_that_cannot_be_is_refused(given: Any) -> None:
    with SAID.refuses("bad_origin origin", worded=False, kind=ValueError):
        interval(given)


def test_the_longest_age_and_the_farthest_instants_fit_the_wire() -> None:
    ends = [origin(0, MOST_AGE_MS), origin(FAR_NS, 0), interval((-FAR_NS, FAR_NS))]
    assert len(list(frames.encode_offered([b"1"] * 3, ends))) == 3
