"""An expression's text to its tree, checked on the way: recursive descent, one function per level of binding.

    or < and < not < comparison (one) < + - < * / < unary - < number, text, field, NAME(...), (...)

A parser of our own: the grammar is six levels, the errors have to name columns and fields, and nothing that evaluates
Python comes near what a user wrote.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple, Union

from coordinator.spec.expressions import kinds
from coordinator.spec.expressions.kinds import Kind, KindError
from coordinator.spec.expressions.tokens import FOREIGN, WORDS, ExpressionError, Token, tokens
from coordinator.spec.files.yaml_source import nearest
from protos.expressions import (
    COUNTS,
    DEEPEST,
    EQUALITY,
    FIELD,
    FUNCTIONS,
    LEAST_WHOLE,
    LONGEST_PATH,
    MOST_NODES,
    MOST_WHOLE,
    NAME,
    ORDER,
)

Tree = Union[None, bool, int, float, str, "list[Tree]"]
CONSTANTS: dict[str, tuple[Tree, Kind]] = {
    "true": (True, "condition"),
    "false": (False, "condition"),
    "null": (None, "null"),
}
EXPECTED = "a number, a text, a field, a function or '('"
_NAME = re.compile(NAME)


class Term(NamedTuple):
    """A part of an expression."""

    tree: Tree
    kind: Kind
    at: int
    depth: int = 1


def parse(text: str, known: Kind = None) -> Tree:
    """The tree of an expression over tuples of kind `known` (None: anything may come). Raises ExpressionError."""
    return _Parser(tokens(text), known).whole()


class _Parser:
    def __init__(self, found: list[Token], known: Kind) -> None:
        self._tokens, self._known = found, known
        self._index = self._nodes = self._nested = 0

    def whole(self) -> Tree:
        if self._next.kind == "end":
            raise ExpressionError(0, f"is empty; write {EXPECTED}")
        term = self._or()
        if self._next.kind != "end":
            raise ExpressionError(self._next.at, self._left_over())
        if term.kind not in (None, "number", "condition"):
            raise ExpressionError(term.at, f"gives {kinds.worded(term.kind)}; a value is a number or a condition")
        return term.tree

    def _left_over(self) -> str:
        token = self._next
        if token.text == ")" and token.kind == "sign":
            return "')' closes nothing; remove it or add '(' before"
        if token.kind == "sign" and token.text in (*ORDER, *EQUALITY):
            return f"compares a second time; write 'a {token.text} b and b {token.text} c'"
        if token.text in FOREIGN:
            return f"write '{FOREIGN[token.text]}' instead of '{token.text}'"
        return f"expected an operator or the end, got {token.in_words}"

    @property
    def _next(self) -> Token:
        return self._tokens[self._index]

    def _take(self, *texts: str, kind: str = "sign") -> Token | None:
        """The next token if it is one of these, which is then behind us."""
        token = self._next
        if token.kind != kind or token.text not in texts:
            return None
        self._index += 1
        return token

    def _must(self, sign: str, text: str) -> None:
        if not self._take(sign):
            raise ExpressionError(self._next.at, f"{text}, got {self._next.in_words}")

    def _node(self, at: int) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise ExpressionError(at, f"has more than {MOST_NODES} parts; make it simpler")

    def _made(self, operation: str, at: int, *terms: Term) -> Term:
        self._node(at)
        depth = 1 + max(term.depth for term in terms)
        if depth > DEEPEST:
            raise ExpressionError(at, f"is nested more than {DEEPEST} deep; make it simpler")
        try:
            kind = kinds.result(operation, [term.kind for term in terms])
        except KindError as error:
            where = at if error.index < 0 else terms[error.index].at
            raise ExpressionError(where, str(error)) from error
        return Term([operation, *(term.tree for term in terms)], kind, terms[0].at, depth)

    def _deeper(self, inner: Callable[[], Term], at: int) -> Term:
        """`inner`, one level further in: also what makes no node must not nest without end."""
        self._nested += 1
        if self._nested > DEEPEST:
            raise ExpressionError(at, f"is nested more than {DEEPEST} deep; make it simpler")
        term = inner()
        self._nested -= 1
        return term

    def _row(self, word: str, inner: Callable[[], Term]) -> Term:
        """a and b and c: one operation of three."""
        terms = [inner()]
        at = self._next.at
        while self._take(word, kind="name"):
            terms.append(inner())
        return self._made(word, at, *terms) if len(terms) > 1 else terms[0]

    def _or(self) -> Term:
        return self._row("or", self._and)

    def _and(self) -> Term:
        return self._row("and", self._not)

    def _not(self) -> Term:
        token = self._take("not", kind="name")
        if token is None:
            return self._comparison()
        return self._made("not", token.at, self._deeper(self._not, token.at))._replace(at=token.at)

    def _comparison(self) -> Term:
        left = self._sum()
        sign = self._take(*ORDER, *EQUALITY)
        return self._made(sign.text, sign.at, left, self._sum()) if sign else left

    def _sum(self) -> Term:
        return self._left_to_right(("+", "-"), "+", self._product)

    def _product(self) -> Term:
        return self._left_to_right(("*", "/"), "*", self._signed)

    def _left_to_right(self, signs: tuple[str, str], joining: str, inner: Callable[[], Term]) -> Term:
        """a + b + c - d: sums of neighbours are one operation, so a long sum is not a deep one."""
        terms, first = [inner()], self._next
        sign: Token | None = None
        while token := self._take(*signs):
            if sign is not None and not (sign.text == token.text == joining):
                terms, first = [self._made(sign.text, first.at, *terms)], token
            sign = token
            terms.append(inner())
        return self._made(sign.text, first.at, *terms) if sign else terms[0]

    def _signed(self) -> Term:
        token = self._take("-")
        if token is None:
            return self._primary()
        if self._next.kind == "number":
            return self._number(-1)._replace(at=token.at)
        return self._made("neg", token.at, self._deeper(self._signed, token.at))._replace(at=token.at)

    def _primary(self) -> Term:
        token = self._next
        if token.kind == "number":
            return self._number(1)
        if token.kind == "text":
            self._index += 1
            self._node(token.at)
            return Term(token.text, "text", token.at)
        if token.kind == "name":
            return self._named()
        if not self._take("("):
            raise ExpressionError(token.at, f"expected {EXPECTED}, got {token.in_words}")
        term = self._deeper(self._or, token.at)
        self._must(")", f"expected ')' for the '(' in column {token.at + 1}")
        return term

    def _number(self, sign: int) -> Term:
        token = self._next
        self._index += 1
        self._node(token.at)
        whole = token.text.isdigit()
        number = sign * (int(token.text) if whole else float(token.text))
        if not (LEAST_WHOLE <= number <= MOST_WHOLE if whole else math.isfinite(number)):
            raise ExpressionError(token.at, f"{token.text} is too large for a number; write a smaller one")
        if self._next.kind in ("name", "number") and self._next.at == token.at + len(token.text):
            text = f"expected an operator after {token.text}, got {self._next.in_words}; numbers have no units here"
            raise ExpressionError(self._next.at, text)
        return Term(number, "number", token.at)

    def _named(self) -> Term:
        token = self._next
        self._index += 1
        if self._next.kind == "sign" and self._next.text == "(" and token.text not in WORDS:
            return self._call(token)
        if token.text in CONSTANTS:
            self._node(token.at)
            return Term(*CONSTANTS[token.text], token.at)
        if token.text in FOREIGN:
            raise ExpressionError(token.at, f"write '{FOREIGN[token.text]}' instead of '{token.text}'")
        if token.text in WORDS and token.text != "this":
            raise ExpressionError(token.at, f"expected {EXPECTED}, got {token.in_words}")
        return self._field(token)

    def _field(self, token: Token) -> Term:
        names = [token]
        while self._take("."):
            if self._next.kind != "name":
                raise ExpressionError(
                    self._next.at, f"expected the name of a field after '.', got {self._next.in_words}"
                )
            names.append(self._next)
            self._index += 1
        if self._next.kind == "sign" and self._next.text == "(":
            raise ExpressionError(token.at, f"'{'.'.join(name.text for name in names)}' is no function; remove '('")
        if token.text == "this":
            names.pop(0)
        self._node(token.at)
        for name in names:
            if not _NAME.fullmatch(name.text):
                text = f"'{name.text}' is no name of a field; write letters, digits and '_', not two '_' first"
                raise ExpressionError(name.at, text)
        if len(names) > LONGEST_PATH:
            raise ExpressionError(token.at, f"this field has {len(names)} names; at most {LONGEST_PATH} are looked up")
        path = [name.text for name in names]
        try:
            return Term([FIELD, *path], kinds.field(self._known, path), token.at)
        except KindError as error:
            raise ExpressionError(names[error.index].at, str(error)) from error

    def _call(self, token: Token) -> Term:
        if token.text not in FUNCTIONS:
            raise ExpressionError(token.at, f"there is no function '{token.text}'; {nearest(token.text, FUNCTIONS)}")
        opening = self._next
        self._index += 1
        terms: list[Term] = []
        while not terms or self._take(","):
            terms.append(self._deeper(self._or, opening.at))
        self._must(")", f"expected ',' or ')' for the '(' in column {opening.at + 1}")
        least, most = COUNTS[token.text]
        if not least <= len(terms) <= most:
            wanted = f"{least}" if least == most else f"{least} or more" if most == MOST_NODES else f"{least} to {most}"
            raise ExpressionError(token.at, f"'{token.text}' takes {wanted} values, and {len(terms)} stand here")
        return self._made(token.text, token.at, *terms)._replace(at=token.at)
