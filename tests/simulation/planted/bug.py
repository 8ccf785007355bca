"""A planted bug: a text of the product and the wrong one that takes its place."""

from typing import NamedTuple


class Bug(NamedTuple):
    """wrong: what is wrong then, one sentence. file: below the project's folder; old stands in it exactly once."""

    name: str
    wrong: str
    file: str
    old: str
    new: str
