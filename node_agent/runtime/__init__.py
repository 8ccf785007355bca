"""The scheduling process: data sockets, engine and operators on one thread. Never imports grpc."""
