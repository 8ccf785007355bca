"""ITS time on the wire: milliseconds modulo 65536 (generationDeltaTime, EN 302 637-2). Differences, never instants."""

from __future__ import annotations

from node_agent.sdk import At

MODULUS = 65536


def since_ms(later: int, earlier: int) -> int:
    """later - earlier in ms, taken as less than 32.768 s apart either way: [-32768, 32768)."""
    return (later - earlier + MODULUS // 2) % MODULUS - MODULUS // 2


def age_s(at: At) -> float:
    """Seconds since the origin of the tuple at hand (middle of the interval that holds it), never below 0.

    The origin of a V2V tuple is the instant of its measurement, so this is the measurement's age.
    """
    low, high = at.origin_ns
    return max(0.0, (2 * at.now_ns - low - high) / 2e9)
