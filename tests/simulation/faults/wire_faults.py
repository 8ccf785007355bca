"""Kinds of faults of what is on the wires: bytes that come late, come again, are damaged, or are of another release."""

from collections import Counter, defaultdict
from zlib import crc32

from node_agent.wire import frames
from protos import tuple_pb2 as pb
from tests.simulation.faults.fault import Begin, Fault
from tests.simulation.faults.faulty_line import SECOND, FaultyLine
from tests.simulation.faults.stranger import Stranger

DIALLED = (("a", "b"), ("b", "c"), ("client-s", "a"), ("client-t", "b"))  # who connects to whom
PEERS = {"a": "b", "b": "c", "c": "a"}


def stranger_as(line: FaultyLine, name: str, incarnation: int, version: int = frames.VERSION) -> bytes:
    """A hello under the name of a node, with a boot of its own."""
    hello = frames.Hello(
        f"node:{name}", "elsewhere", line.random.getrandbits(63) | 1, drift_ppm=50, incarnation=incarnation
    )
    body = pb.Frame(hello=pb.Hello(version=version, **hello._asdict())).SerializeToString()
    return frames.HEAD.pack(len(body), crc32(body)) + body


def _impostor(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    """Somebody says hello as a node that is there, with another boot and a count of starts that is lower."""
    hello = stranger_as(line, fault.node, line.nodes[fault.node].starts - 1)
    impostor = Stranger(line, PEERS[fault.node], hello)

    def leave() -> None:
        impostor.leave()
        fired["impostor"] += "fenced" in impostor.refused

    line.time.after(fault.for_ns, leave)


def _other_version(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    """A node of an older or of a newer release of the wire is refused by that name, and the one that is there stays."""
    version = frames.VERSION + (1 if fault.size % 2 else -1)
    peer = PEERS[fault.node]
    stranger = Stranger(line, peer, stranger_as(line, fault.node, line.nodes[fault.node].starts + 1, version))

    def leave() -> None:
        stranger.leave()
        fired["other_version"] += "hello_version" in stranger.refused
        if stranger.welcomed:
            line.problems.append(f"{peer} has let in version {version} of the wire")

    line.time.after(fault.for_ns, leave)


def _bit_flip(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    """Bits of some frames are not what was sent."""
    way, left = line.wires.way(*fault.way), [1 + fault.size % 3]

    def flip(descriptor: int, data: bytes) -> bytes:
        if not left[0]:
            return data
        left[0] -= 1
        fired["bit_flip"] += 1
        at = line.random.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << line.random.randrange(8)]) + data[at + 1 :]

    def mend() -> None:
        way.passing = None

    way.passing = flip
    line.time.after(fault.for_ns, mend)


def _replay(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    """What a connection has carried comes once more, later and over another connection."""
    from_, to = DIALLED[fault.size % len(DIALLED)]
    way, carried = line.wires.way(from_, to), defaultdict[int, bytearray](bytearray)

    def note(descriptor: int, data: bytes) -> bytes:
        carried[descriptor] += data
        return data

    def again() -> None:
        way.passing = None
        whole = [bytes(data) for descriptor, data in carried.items() if descriptor > newest]
        if whole:
            ghost = Stranger(line, to, whole[0])
            line.time.after(SECOND, lambda: leave(ghost))

    def leave(ghost: Stranger) -> None:
        ghost.leave()
        fired["replay"] += ghost.welcomed

    newest = line.wires.descriptor()
    way.passing = note
    line.wires.reset(from_, to)
    line.time.after(fault.for_ns, again)


WIRE_KINDS: dict[str, Begin] = {
    "impostor": _impostor, "other_version": _other_version, "bit_flip": _bit_flip, "replay": _replay,
}  # fmt: skip
