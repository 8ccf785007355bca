"""Names of an agent's core slots: the places that plans assign operators to."""


def place_name(node: str, core: int) -> str:
    """A node with several cores is several places: `a`, `a.1`, `a.2`. One runtime runs in each."""
    return f"{node}.{core}" if core else node


__all__ = ["place_name"]
