"""Bytes that a payload takes on the wire, without encoding it for real."""

import json
from typing import Any


def payload_bytes(payload: Any) -> int:
    """Of a protobuf message its encoded size, of anything else that of its JSON; 0 for what has none."""
    size = getattr(payload, "ByteSize", None)
    if size is not None:
        return int(size())
    try:
        return len(json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode())
    except (TypeError, ValueError):
        return 0
