"""The shape of `from:` of a source and `to:` of an output in query.yaml: a place outside, as pydantic models."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from coordinator.errors import MistakeError
from coordinator.spec.files.quantities import Strict
from protos import connectors, ros_types
from protos.plan.sources import Connector

_KINDS = "{mqtt: mqtt://host/topic}, {zenoh: ADDRESS}, {rosbag: PATH} and {mcap: PATH}"

Url = Annotated[str, Field(min_length=1, max_length=connectors.MOST_BYTES)]
Text = Annotated[str, Field(min_length=1, max_length=255)]


class _ConnectorFile(Strict):
    """One of `mqtt`, `zenoh`, `rosbag` and `mcap` with a place.

    mqtt: mqtt://host:port/topic, or mqtts:// under TLS
    zenoh: tcp/host:port, or tls/host:port under TLS
    rosbag: the folder of a ROS 2 bag
    mcap: an MCAP file
    topic: where the place does not name it; of zenoh a key
    encoding: of messages; that of the stream's type unless given
    schema: the ROS type of messages, with `cdr`; of MCAP also that of protobuf messages
    qos: of MQTT; 0 unless given
    """

    mqtt: Url | None = None
    zenoh: Url | None = None
    rosbag: Url | None = None
    mcap: Url | None = None
    topic: Text | None = None
    encoding: Literal["json", "cdr"] | None = None
    schema_: Text | None = Field(default=None, alias="schema")
    qos: Annotated[int, Field(ge=0, le=connectors.MOST_QOS, strict=True)] | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        given = [kind for kind in connectors.KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            said = f"has {' and '.join(given)}" if given else "names no place"
            raise MistakeError("connector_kind", said, f"write one of {_KINDS}")
        kind, url = given[0], getattr(self, given[0])
        if why := connectors.wrong(kind, url, reads=isinstance(self, FromFile)):
            raise MistakeError("connector_place", f"has a place of {kind} that {why}", f"write one of {_KINDS}")
        if self.qos is not None and kind != "mqtt":
            raise MistakeError("key_of_other_connector", f"has 'qos' with '{kind}'", "remove it: it is one of MQTT")
        if self.topic is not None and kind == "mqtt":
            raise MistakeError("key_of_other_connector", "has 'topic' with 'mqtt'", "write it behind the host")
        if self.topic is None and kind == "zenoh":
            raise MistakeError("connector_place", "names no key of zenoh", "add one, like 'topic: robot/camera'")
        if kind == "zenoh" and (why := connectors.wrong_key(self.topic or "", reads=isinstance(self, FromFile))):
            mend = "write it like robot/camera"
            raise MistakeError("connector_topic", f"has a topic, {self.topic!r}, that {why}", mend)
        self._check_schema(kind)
        return self

    def _check_schema(self, kind: str) -> None:
        """A bag is always CDR, and an MCAP file names the type of protobuf messages as well."""
        both = "write both, like 'encoding: cdr' and 'schema: sensor_msgs/msg/Imu'"
        if kind == "rosbag" and self.encoding != "cdr":
            raise MistakeError("cdr_and_schema", "has a bag without 'encoding: cdr' and 'schema'", both)
        if (self.encoding == "cdr") != (self.schema_ is not None) and (kind != "mcap" or self.encoding == "cdr"):
            raise MistakeError("cdr_and_schema", "has one of 'encoding: cdr' and 'schema'", f"{both}, or none")
        if self.encoding == "cdr" and self.schema_ and ros_types.full_name(self.schema_) not in ros_types.TYPES:
            text = f"has a schema, {self.schema_!r}, that is none of the message types of ROS 2 Humble"
            raise MistakeError("unknown_ros_type", text, ros_types.instead(self.schema_))

    @property
    def connector(self) -> Connector:
        """As plans have it."""
        kind = next(each for each in connectors.KINDS if getattr(self, each) is not None)
        return Connector(
            kind=kind,
            url=getattr(self, kind),
            topic=self.topic or "",
            encoding=self.encoding or "",
            schema=self.schema_ or "",
            stamp=getattr(self, "stamp", None) or "",
            qos=self.qos or 0,
        )


class FromFile(_ConnectorFile):
    """A place that messages come from.

    stamp: the path in a message to the instant at which it originated, like header.stamp, or `transport`, where that
        carries one; without it, a message originates as it arrives
    """

    stamp: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$", max_length=255)] | None = None


class ToFile(_ConnectorFile):
    """A place that results go to."""
