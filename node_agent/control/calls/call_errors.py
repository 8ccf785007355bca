"""How a call of the coordinator fails, in gRPC's words."""

from enum import IntEnum


class Code(IntEnum):
    """gRPC's status codes, those that are used here (https://grpc.io/docs/guides/status-codes)."""

    OK = 0
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13


class CallError(Exception):
    """Ends a call with that code; details: for people."""

    def __init__(self, code: Code, details: str) -> None:
        super().__init__(details)
        self.code, self.details = code, details
