"""The pure core: no clock, socket, thread, file, randomness, grpc or protobuf. It is told the time."""
