"""A tree back as text, for sentences about a plan: parsed again it is the same tree."""

from __future__ import annotations

from coordinator.spec.expressions.parser import CONSTANTS, Tree
from coordinator.spec.expressions.tokens import FOREIGN, WORDS
from protos.expressions import EQUALITY, FIELD, FUNCTIONS, ORDER

_LEVELS = {"or": 1, "and": 2, "not": 3, **dict.fromkeys((*ORDER, *EQUALITY), 4)}
_LEVELS |= {"+": 5, "-": 5, "*": 6, "/": 6, "neg": 7}
_ALONE = 8  # what needs no parentheses anywhere


def written(tree: Tree) -> str:
    """The expression of a checked tree."""
    return _written(tree)[0]


def _written(tree: Tree) -> tuple[str, int]:
    """The text, and how strongly its outermost part binds."""
    if not isinstance(tree, list):
        return _constant(tree), _ALONE
    operation, *rest = tree
    if operation == FIELD:
        names = [str(name) for name in rest]
        plain = names and names[0] not in WORDS and names[0] not in FOREIGN
        return ".".join(names if plain else ["this", *names]), _ALONE
    name = str(operation)
    if name in FUNCTIONS:
        return f"{name}({', '.join(written(part) for part in rest)})", _ALONE
    level = _LEVELS[name]
    if name == "not":
        return f"not {_inside(rest[0], level)}", level
    if name == "neg":
        number = isinstance(rest[0], (int, float)) and not isinstance(rest[0], bool)
        return f"-({_constant(rest[0])})" if number else f"-{_inside(rest[0], level)}", level
    first, *others = rest
    joined = level in (5, 6) and not (isinstance(first, list) and first[0] == name and name in "+*")  # a - b + c
    texts = [_inside(first, level if joined else level + 1), *(_inside(part, level + 1) for part in others)]
    return f" {name} ".join(texts), level


def _inside(tree: Tree, least: int) -> str:
    text, level = _written(tree)
    return text if level >= least else f"({text})"


def _constant(value: Tree) -> str:
    for word, (constant, _) in CONSTANTS.items():
        if value is constant:
            return word
    if isinstance(value, str):
        quote = '"' if "'" in value and '"' not in value else "'"
        return quote + value.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote
    return repr(value)
