"""Protobuf to core types and back; no other module of the agent knows both."""
