"""Recordings as sources and outputs: bags of ROS 2 and MCAP files."""
