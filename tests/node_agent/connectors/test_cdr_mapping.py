"""Messages of ROS 2 in CDR: rosbags writes them, the mapping reads them, and the other way."""

import random
from math import inf, nan
from typing import Any

import numpy
import pytest
from rosbags.typesys import Stores, get_typestore

from node_agent.connectors.connector_ports import NotConnectableError
from node_agent.connectors.mapping import Mapping, mapping
from node_agent.connectors.stamps import Stamps
from node_agent.link.limits import MAX_PAYLOAD_BYTES
from node_agent.operators.codecs import CodecError, Codecs
from protos import ros_types
from tests.seeds import seeds

STORE = get_typestore(Stores.ROS2_HUMBLE)
SECOND = 1_000_000_000
TYPES = (
    "sensor_msgs/msg/Imu", "sensor_msgs/msg/LaserScan", "nav_msgs/msg/Path", "tf2_msgs/msg/TFMessage",
    "diagnostic_msgs/msg/DiagnosticArray", "std_msgs/msg/String", "std_msgs/msg/Empty", "sensor_msgs/msg/PointCloud2",
    "sensor_msgs/msg/Image", "geometry_msgs/msg/PoseWithCovarianceStamped",
)  # fmt: skip


def cdr(schema: str, codec: str = "json") -> Mapping:
    return mapping(Codecs().get(codec), "cdr", schema)


def made(name: str, *values: Any) -> Any:
    return STORE.types[name](*values)


def header(sec: int = 5, nanosec: int = 7) -> Any:
    return made("std_msgs/msg/Header", made("builtin_interfaces/msg/Time", sec, nanosec), "base_link")


def scan(ranges: list[float]) -> bytes:
    array = numpy.array(ranges, numpy.float32)
    message = made("sensor_msgs/msg/LaserScan", header(), 0.0, 1.0, 0.1, 0.0, 0.1, 0.0, 30.0, array, array[:0])
    return bytes(STORE.serialize_cdr(message, "sensor_msgs/msg/LaserScan"))


def picture(encoding: str, array: Any, step: int, big_endian: bool = False) -> bytes:
    height, width = array.shape[:2]
    data = numpy.frombuffer(array.tobytes(), numpy.uint8)
    message = made("sensor_msgs/msg/Image", header(), height, width, encoding, int(big_endian), step, data)
    return bytes(STORE.serialize_cdr(message, "sensor_msgs/msg/Image"))


def test_the_types_that_a_query_may_name_are_those_that_nodes_know() -> None:
    assert frozenset(STORE.types) == ros_types.TYPES


def test_a_message_becomes_plain_json_and_its_stamp_is_found() -> None:
    value, whole = cdr("sensor_msgs/LaserScan").stamped(scan([1.0, inf, nan]))
    assert value["header"] == {"stamp": {"sec": 5, "nanosec": 7}, "frame_id": "base_link"}
    assert (value["ranges"], value["intensities"]) == ([1.0, None, None], [])
    assert Stamps("header.stamp").age_ns(whole, None, 6 * SECOND) == SECOND - 7


def test_both_byte_orders_are_read() -> None:
    message = made("std_msgs/msg/String", "grün")
    for little_endian in (False, True):
        data = bytes(STORE.serialize_cdr(message, "std_msgs/msg/String", little_endian=little_endian))
        assert cdr("std_msgs/msg/String").decode(data) == {"data": "grün"}


@pytest.mark.parametrize("schema", TYPES)
@pytest.mark.parametrize("seed", seeds([1]))
def test_any_value_comes_back(schema: str, seed: int) -> None:
    """Values of random messages, as JSON has them."""
    draw, mapped = random.Random(seed), cdr(schema)
    for _ in range(5):
        value = drawn(draw, schema)
        assert mapped.decode(mapped.encode(value)) == value


def drawn(draw: random.Random, schema: str) -> dict[str, Any]:
    fields = STORE.get_msgdef(schema).fields
    return {
        name: drawn_field(draw, described)
        for name, described in fields
        if name != "structure_needs_at_least_one_member"
    }


def drawn_field(draw: random.Random, described: Any) -> Any:
    kind, rest = int(described[0]), described[1]
    if kind == 2:
        return drawn(draw, rest)
    if kind in (3, 4):
        inner, count = rest
        return [drawn_field(draw, inner) for _ in range(count if kind == 3 else draw.randrange(4))]
    base = rest[0]
    if base == "string":
        return "".join(draw.choices("ab ü", k=draw.randrange(5)))
    if base == "bool":
        return draw.random() < 0.5
    return float(draw.randrange(-100, 100)) if base.startswith("float") else draw.randrange(100)


def test_what_is_left_out_is_zero_or_empty() -> None:
    mapped = cdr("geometry_msgs/msg/PoseStamped")
    value = mapped.decode(mapped.encode({"pose": {"position": {"x": 1}}}))
    assert value["pose"]["position"] == {"x": 1.0, "y": None, "z": None}, "what is no number stays none"
    assert value["header"] == {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    assert cdr("sensor_msgs/msg/Imu").decode(cdr("sensor_msgs/msg/Imu").encode({}))["linear_acceleration_covariance"]


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        ("std_msgs/msg/String", {"text": "x"}, "has no field text: it has data"),
        ("std_msgs/msg/String", "x", "no mapping of the fields"),
        ("std_msgs/msg/String", {"data": 1}, "data is 1, and its type string"),
        ("std_msgs/msg/Int8", {"data": 200}, "cannot encode std_msgs/msg/Int8"),
        ("std_msgs/msg/Int8", {"data": 1.5}, "data is 1.5, and its type int8"),
        ("std_msgs/msg/UInt8MultiArray", {"data": [300]}, "cannot encode"),
        ("sensor_msgs/msg/Imu", {"orientation_covariance": [1.0]}, "has 1 items, and its type has 9"),
        ("sensor_msgs/msg/LaserScan", {"ranges": 3}, "ranges is 3, and no list"),
    ],
)
def test_what_is_no_message_is_refused_in_a_line(schema: str, value: Any, says: str) -> None:
    with pytest.raises(CodecError) as told:
        cdr(schema).encode(value)
    assert says in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("seed", seeds([1, 2]))
@pytest.mark.parametrize("codec", ["json", "numpy", "bytes"])
def test_any_damage_is_a_value_or_a_refusal(codec: str, seed: int) -> None:
    """Bits that changed, cuts, bytes too many, bytes of another type and bytes of nothing."""
    draw = random.Random(seed)
    schemas = TYPES if codec == "json" else ("sensor_msgs/msg/Image", "sensor_msgs/msg/PointCloud2")
    good = [bytes(cdr(each).encode(drawn(draw, each))) for each in TYPES]
    good.append(picture("rgb8", numpy.zeros((4, 5, 3), numpy.uint8), 15))
    for _ in range(400):
        data = bytearray(draw.choice(good))
        for _ in range(draw.randrange(4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        cut = draw.randrange(len(data) + 1) if draw.random() < 0.3 else len(data)
        damaged = bytes(data[:cut]) + draw.randbytes(draw.choice((0, 0, 0, 9)))
        mapped = cdr(draw.choice(schemas), codec)
        try:
            mapped.stamped(damaged)
        except CodecError as error:
            assert error.code in ("not_decoded", "too_large")
            assert "\n" not in str(error)


def test_a_message_of_another_type_is_refused() -> None:
    with pytest.raises(CodecError) as told:
        cdr("sensor_msgs/msg/Imu").decode(scan([1.0]))
    assert told.value.code == "not_decoded"


def test_what_is_large_is_no_json() -> None:
    data = picture("rgb8", numpy.zeros((700, 700, 3), numpy.uint8), 2100)
    assert len(data) > MAX_PAYLOAD_BYTES
    with pytest.raises(CodecError) as told:
        cdr("sensor_msgs/msg/Image").decode(data)
    assert told.value.code == "too_large"
    assert cdr("sensor_msgs/msg/Image", "numpy").decode(data).shape == (700, 700, 3)
    assert len(cdr("sensor_msgs/msg/Image", "bytes").decode(data)) == 700 * 2100


@pytest.mark.parametrize(
    ("encoding", "dtype", "shape"),
    [
        ("mono8", "uint8", (4, 6)), ("bgr8", "uint8", (4, 6, 3)), ("16UC1", "uint16", (4, 6)),
        ("32FC2", "float32", (4, 6, 2)), ("64FC1", "float64", (4, 6)), ("8SC4", "int8", (4, 6, 4)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("big_endian", [False, True])
def test_an_image_is_an_array_of_its_pixels(
    encoding: str, dtype: str, shape: tuple[int, ...], big_endian: bool
) -> None:
    pixels = numpy.arange(numpy.prod(shape)).reshape(shape).astype(dtype)
    sent = pixels.astype(pixels.dtype.newbyteorder(">" if big_endian else "<"))
    value, whole = cdr("sensor_msgs/msg/Image", "numpy").stamped(picture(encoding, sent, sent[0].nbytes, big_endian))
    assert (value.dtype, value.shape) == (numpy.dtype(dtype), shape)
    assert (value == pixels).all()
    assert whole.header.stamp.sec == 5


def test_rows_may_be_longer_than_their_pixels_and_unknown_pixels_are_rows() -> None:
    padded = numpy.zeros((2, 8), numpy.uint8)
    padded[:, :6] = 9
    data = numpy.frombuffer(padded.tobytes(), numpy.uint8)
    for encoding, shape in (("rgb8", (2, 2, 3)), ("yuv422", (2, 8))):
        message = made("sensor_msgs/msg/Image", header(), 2, 2, encoding, 0, 8, data)
        value = cdr("sensor_msgs/msg/Image", "numpy").decode(
            bytes(STORE.serialize_cdr(message, "sensor_msgs/msg/Image"))
        )  # fmt: skip
        assert value.shape == shape
        assert value.max() == 9


@pytest.mark.parametrize(
    ("codec", "schema", "code", "says"),
    [
        ("json", "", "missing_parameter", "schema: sensor_msgs/msg/Imu"),
        ("json", "sensor_msgs/msg/Imo", "unknown_type", "there is sensor_msgs/msg/Imu"),
        ("json", "__import__('os')", "unknown_type", "none of the message types"),
        ("arrow", "sensor_msgs/msg/Imu", "other_type", "json, bytes or numpy"),
        ("numpy", "sensor_msgs/msg/Imu", "other_type", "no field 'data'"),
    ],
)
def test_types_that_cannot_be_are_told_before_any_message(codec: str, schema: str, code: str, says: str) -> None:
    with pytest.raises(NotConnectableError) as told:
        cdr(schema, codec)
    assert told.value.code == code
    assert says in str(told.value)
