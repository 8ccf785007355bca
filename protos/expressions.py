"""Value expressions as they travel: what a tree may hold and how large it may be; standard library only, the sole
definition. The coordinator makes trees from text, an agent evaluates them, and a test holds both to this file.

    tree      = number | text | true | false | null | [operation, tree, ...] | ["field", name, ...]

`["field", "car", "speed"]` is `car.speed`; `["field"]` is the whole tuple. Numbers are finite; whole ones fit into 64
bits, signed or not. As JSON text a tree is at most LONGEST_JSON characters long.
"""

from collections.abc import Mapping

LONGEST_TEXT = 256  # characters of an expression as a user writes it, and of a text in a tree
LONGEST_JSON = 8192
MOST_NODES = 64  # operations, fields and constants
DEEPEST = 16  # a constant or a field alone has depth 1
LONGEST_PATH = 16  # names of one field
LEAST_WHOLE, MOST_WHOLE = -(1 << 63), (1 << 64) - 1
NAME = r"(?!__)[A-Za-z_][A-Za-z0-9_]*"  # of a field; two underscores first are nobody's data
FIELD = "field"

ARITHMETIC: Mapping[str, tuple[int, int]] = {  # numbers -> a number: how many of them
    "+": (2, MOST_NODES),
    "*": (2, MOST_NODES),
    "-": (2, 2),
    "/": (2, 2),
    "neg": (1, 1),
    "abs": (1, 1),
    "min": (2, MOST_NODES),
    "max": (2, MOST_NODES),
}
ORDER = ("<", "<=", ">", ">=")  # two numbers or two texts -> a condition
EQUALITY = ("==", "!=")  # two of anything that is no list and no message -> a condition
LOGIC: Mapping[str, tuple[int, int]] = {"and": (2, MOST_NODES), "or": (2, MOST_NODES), "not": (1, 1)}
CHOICE = "if"  # ["if", condition, one, other]
SINCE = "since"  # ["since", key, ...]: numbers or texts -> seconds since a tuple with the same ones was let in
LONGEST_SINCE_S = 60.0  # also where none is remembered
MOST_KEYS = 1024  # that are remembered; the one that was let in longest ago is forgotten first
COUNTS: Mapping[str, tuple[int, int]] = {
    **ARITHMETIC,
    **dict.fromkeys((*ORDER, *EQUALITY), (2, 2)),
    **LOGIC,
    CHOICE: (3, 3),
    SINCE: (1, 4),
}  # how many arguments each operation takes, least and most
FUNCTIONS = ("abs", "if", "max", "min", "since")  # written NAME(...)
