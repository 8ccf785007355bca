"""The message types of ROS 2 that a stream may carry in CDR: those of Humble."""

from difflib import get_close_matches

_PACKAGES = {
    "action_msgs": "GoalInfo GoalStatus GoalStatusArray",
    "actionlib_msgs": "GoalID GoalStatus GoalStatusArray",
    "builtin_interfaces": "Duration Time",
    "diagnostic_msgs": "DiagnosticArray DiagnosticStatus KeyValue",
    "geometry_msgs": (
        "Accel AccelStamped AccelWithCovariance AccelWithCovarianceStamped Inertia InertiaStamped Point Point32 "
        "PointStamped Polygon PolygonStamped Pose Pose2D PoseArray PoseStamped PoseWithCovariance "
        "PoseWithCovarianceStamped Quaternion QuaternionStamped Transform TransformStamped Twist TwistStamped "
        "TwistWithCovariance TwistWithCovarianceStamped Vector3 Vector3Stamped Wrench WrenchStamped"
    ),
    "lifecycle_msgs": "State Transition TransitionDescription TransitionEvent",
    "nav_msgs": "GridCells MapMetaData OccupancyGrid Odometry Path",
    "rcl_interfaces": (
        "FloatingPointRange IntegerRange ListParametersResult Log Parameter ParameterDescriptor ParameterEvent "
        "ParameterEventDescriptors ParameterType ParameterValue SetParametersResult"
    ),
    "rmw_dds_common": "Gid NodeEntitiesInfo ParticipantEntitiesInfo",
    "rosbag2_interfaces": "ReadSplitEvent WriteSplitEvent",
    "rosgraph_msgs": "Clock",
    "sensor_msgs": (
        "BatteryState CameraInfo ChannelFloat32 CompressedImage FluidPressure Illuminance Image Imu JointState Joy "
        "JoyFeedback JoyFeedbackArray LaserEcho LaserScan MagneticField MultiDOFJointState MultiEchoLaserScan "
        "NavSatFix NavSatStatus PointCloud PointCloud2 PointField Range RegionOfInterest RelativeHumidity Temperature "
        "TimeReference"
    ),
    "shape_msgs": "Mesh MeshTriangle Plane SolidPrimitive",
    "statistics_msgs": "MetricsMessage StatisticDataPoint StatisticDataType",
    "std_msgs": (
        "Bool Byte ByteMultiArray Char ColorRGBA Empty Float32 Float32MultiArray Float64 Float64MultiArray Header "
        "Int16 Int16MultiArray Int32 Int32MultiArray Int64 Int64MultiArray Int8 Int8MultiArray MultiArrayDimension "
        "MultiArrayLayout String UInt16 UInt16MultiArray UInt32 UInt32MultiArray UInt64 UInt64MultiArray UInt8 "
        "UInt8MultiArray"
    ),
    "stereo_msgs": "DisparityImage",
    "tf2_msgs": "TF2Error TFMessage",
    "trajectory_msgs": "JointTrajectory JointTrajectoryPoint MultiDOFJointTrajectory MultiDOFJointTrajectoryPoint",
    "unique_identifier_msgs": "UUID",
    "visualization_msgs": (
        "ImageMarker InteractiveMarker InteractiveMarkerControl InteractiveMarkerFeedback InteractiveMarkerInit "
        "InteractiveMarkerPose InteractiveMarkerUpdate Marker MarkerArray MenuEntry MeshFile UVCoordinate"
    ),
}
TYPES = frozenset(f"{package}/msg/{name}" for package, names in _PACKAGES.items() for name in names.split())


def full_name(schema: str) -> str:
    """As TYPES have it: sensor_msgs/Imu is sensor_msgs/msg/Imu."""
    package, _, name = schema.partition("/")
    return schema if name.startswith("msg/") else f"{package}/msg/{name}"


def instead(schema: str) -> str:
    """What to write for a type that there is not."""
    near = get_close_matches(full_name(schema), sorted(TYPES), 3, 0.5)
    return f"there is {' or '.join(near)}" if near else "write it like sensor_msgs/msg/Imu"


__all__ = ["TYPES", "full_name", "instead"]
