"""Calls of the coordinator: gRPC on HTTP/2, who may call, and what was refused. The service itself stands above.

Begin at grpc_connection.py, a client's connection.
"""
