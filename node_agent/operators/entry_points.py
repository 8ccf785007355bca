"""What installed packages offer under a group of entry points: names first, the objects only when asked for."""

from collections.abc import Callable, Mapping
from typing import Any

Offers = Mapping[str, tuple[str, Callable[[], Any]]]
"""By name: where it is (`module:attribute`), and what loads it."""

Discover = Callable[[str], Offers]


def installed(group: str) -> Offers:
    """The offers of every installed package. Where two disagree about a name, loading it raises ValueError."""
    from importlib import metadata  # takes tens of milliseconds, and most nodes never need it

    offers: dict[str, tuple[str, Callable[[], Any]]] = {}
    for entry in metadata.entry_points(group=group):
        known = offers.get(entry.name)
        if known is None:
            offers[entry.name] = (entry.value, entry.load)
        elif known[0] != entry.value:  # the same twice is one package seen along two paths
            offers[entry.name] = (known[0], _ambiguous(entry.name, known[0], entry.value))
    return offers


def _ambiguous(name: str, one: str, other: str) -> Callable[[], Any]:
    def refuse() -> Any:
        raise ValueError(f"two installed packages offer {name!r}: {one} and {other}; uninstall one")

    return refuse
