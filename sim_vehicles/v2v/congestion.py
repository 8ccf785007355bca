"""Decentralised congestion control: how often a station may send, by how busy its channel is.

The reactive approach of ETSI TS 102 687 V1.2.1: five states by the channel busy ratio, each with a least time T_off
between two messages; a state leads to its neighbours only. Values of table A.1, which is for messages of up to 1 ms.
Here T_off holds for each kind of message by itself, as T_GenCam_Dcc (EN 302 637-2, 6.1.3) and as T_GenCpm.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MEASURED_NS = 100_000_000  # the busy ratio is of that time, and a state may change as often
STATES = ("relaxed", "active 1", "active 2", "active 3", "restrictive")
BUSY = np.array([0.3, 0.4, 0.5, 0.6])  # from these ratios on the next state is meant
T_OFF_NS = np.array([100, 200, 400, 500, 1000], dtype=np.int64) * 1_000_000

# Car 2 Car Communication Consortium, TR 2052, Survey on ITS-G5 CAM statistics: about 350 bytes in the mean, signed.
CAM_BYTES = 350
# Thandavarayan, Sepulcre, Gozalvez, Analysis of message generation rules for collective perception, IEEE IV 2019:
# header, management and station data; a sensor's description; an object.
CPM_BYTES, SENSOR_BYTES, OBJECT_BYTES = 121, 35, 35

# IEEE 802.11, OFDM with 10 MHz: preamble and signal field; QPSK 1/2, 6 Mbit/s, has 48 bits a symbol.
PREAMBLE_NS, SYMBOL_NS, SYMBOL_BITS = 40_000, 8_000, 48
SERVICE_BITS, TAIL_BITS = 16, 6

Numbers = NDArray[np.int64]


def cpm_bytes(objects: Numbers) -> Numbers:
    """Size of CPMs with so many objects, and one sensor's description."""
    return CPM_BYTES + SENSOR_BYTES + OBJECT_BYTES * objects


def air_time_ns(size: Numbers) -> Numbers:
    """How long messages of so many bytes take the channel."""
    bits = SERVICE_BITS + 8 * size + TAIL_BITS
    return PREAMBLE_NS + -(-bits // SYMBOL_BITS) * SYMBOL_NS


def next_state(state: Numbers, busy: NDArray[np.float64]) -> Numbers:
    """The states (places in `STATES`) after one more measurement: a step towards the one of this busy ratio, 0 to 1."""
    meant = np.searchsorted(BUSY, busy, side="right")
    return np.clip(meant, state - 1, state + 1)
