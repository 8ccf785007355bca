"""What a recording says of its messages of ROS 2, so that tools of ROS read it."""

from node_agent.connectors.recordings.recording_writer import Format
from node_agent.connectors.ros.typestore import known, typestore


def ros_format(schema: str) -> Format:
    """Of messages of that type in CDR. Raises NotConnectableError."""
    type_ = known(schema)
    definition, _ = typestore().generate_msgdef(type_, ros_version=2)
    return Format("ros2", "cdr", type_, "ros2msg", definition)
