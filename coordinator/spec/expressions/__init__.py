"""Value expressions: the worth of a tuple, written by a user, checked here, evaluated by an agent.

Begin at parser.py. docs/reference/values.md has the language, protos/expressions.py its trees and limits.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.errors import Mistake
from coordinator.spec.expressions.kinds import Fields, Kind, MessageFields
from coordinator.spec.expressions.parser import Tree, parse
from coordinator.spec.expressions.tokens import ExpressionError
from coordinator.spec.expressions.written import written
from coordinator.spec.files.yaml_source import Source


def checked(source: Source, keys: Sequence[object], text: object, known: Kind = None) -> Tree:
    """The tree of the expression `text` that stands under `keys` of a file, over tuples of kind `known`.

    What is wrong with it is noted in `source`, whose `check` raises BadInputError with all that was noted; None is then
    returned.
    """
    name = str(keys[-1]) if keys else "the expression"
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        text = repr(text)  # YAML has read `value: 3` as a number
    if not isinstance(text, str):
        mend = "write one, like 'speed' or 'if(car.speed > 3, 2, 1)'"
        source.wrong("no_expression", keys, f"{name} is no expression", mend)
        return None
    try:
        return parse(text, known)
    except ExpressionError as error:
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        source.add(keys, Mistake.of("bad_expression", str(error)).within(f"{name}: {shown!r}", ", "))
        return None


__all__ = ["ExpressionError", "Fields", "Kind", "MessageFields", "Tree", "checked", "parse", "written"]
