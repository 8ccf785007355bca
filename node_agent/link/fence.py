"""The fence: which of two incarnations that say hello under a node's name is let in. Pure.

A node counts the starts of its runtime on disk (`Header.starts`). A greater count is the later incarnation: it
supersedes the one that lives. Another boot with a count that is not greater is a copy of the node, or the node after
its state directory was wiped: it is let in only when the one that lives has been away for AWAY_NS.
"""

from node_agent.link.limits import LinkError

AWAY_NS = 60_000_000_000  # a wiped node waits so long; a node that is cut off for longer may find a copy in its place


def supersedes(incarnation: int, living: int) -> bool:
    """Whether an incarnation is later than the one that lives. 0: a version that does not tell its count; of two such
    ones nothing is known but who comes last."""
    return incarnation > living or not (incarnation or living)


def refusal(peer: str, boot: int, incarnation: int, living_boot: int, living: int) -> LinkError:
    """Names both incarnations, and the mend."""
    return LinkError(
        "fenced",
        f"{peer} is already here as incarnation {living} (boot {living_boot:016x}), so incarnation {incarnation}"
        f" (boot {boot:016x}) is refused. Where one is a copy of the other's disk, stop it, give it another --name and"
        f" an empty state directory. Where the state directory was wiped, it is let in {AWAY_NS // 10**9} s after the"
        " other has gone",
    )


def superseded(peer: str, boot: int) -> LinkError:
    """Of an incarnation after which a later one came. Names it, and the mend."""
    return LinkError(
        "fenced",
        f"{peer} has come back with a newer incarnation than {boot:016x}, which is refused from now on. Where the newer"
        " one is a copy of its disk, stop the copy and start this agent again: it is let in"
        f" {AWAY_NS // 10**9} s after the copy has gone at the latest",
    )
