"""Messages of ROS 2: their bytes, and what they are as values of a stream."""
