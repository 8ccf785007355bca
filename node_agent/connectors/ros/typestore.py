"""The message types of ROS 2 that a node knows, by rosbags: those of Humble. Nothing that comes from outside adds one,
since rosbags makes Python code of a definition."""

from functools import cache

from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from node_agent.connectors.connector_ports import NotConnectableError
from protos import ros_types


@cache
def typestore() -> Typestore:
    """Loaded once; takes a tenth of a second."""
    return get_typestore(Stores.ROS2_HUMBLE)


def known(schema: str) -> str:
    """The name of a type as rosbags has it: sensor_msgs/Imu is sensor_msgs/msg/Imu. Raises NotConnectableError."""
    full = ros_types.full_name(schema)
    if full in ros_types.TYPES:
        return full
    if not schema:
        text, mend = "messages in CDR do not say of which type they are", "name it: 'schema: sensor_msgs/msg/Imu'"
        raise NotConnectableError("missing_parameter", text, mend, subject="schema")
    text = f"{schema!r} is none of the message types of ROS 2 that are known here"
    raise NotConnectableError("unknown_type", text, ros_types.instead(schema), subject="schema")
