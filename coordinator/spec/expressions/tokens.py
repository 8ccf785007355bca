"""An expression's text in tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from protos.expressions import LONGEST_TEXT

WORDS = ("and", "or", "not", "true", "false", "null", "this")  # no names of fields; `this.and` is one
FOREIGN = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false", "None": "null", "NULL": "null"} | {
    word.upper(): word for word in ("and", "or", "not")
}  # how other languages write them
_TOKEN = re.compile(
    r"""(?P<blank>\s+)
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<name>[^\W\d]\w*)
    | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<sign><=|>=|==|!=|[-+*/<>(),.])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_INSTEAD = {
    "=": "'=' assigns nothing here; write '==' to compare",
    "&&": "write 'and' instead of '&&'",
    "&": "write 'and' instead of '&'",
    "||": "write 'or' instead of '||'",
    "|": "write 'or' instead of '|'",
    "!": "write 'not' instead of '!'",
    "<>": "write '!=' instead of '<>'",
    "**": "there are no powers; write 'x * x'",
    "^": "there are no powers; write 'x * x'",
    "[": "lists cannot be looked into; name a field, like 'car.speed'",
    "{": "there are no braces; write 'if(condition, one, other)'",
    "?": "write 'if(condition, one, other)' instead of '? :'",
    "'": "this text has no end; close it with '",
    '"': 'this text has no end; close it with "',
}  # what people write who know other languages


@dataclass
class ExpressionError(ValueError):
    """An expression that cannot be used: `at` counts characters from 0."""

    at: int
    text: str

    def __str__(self) -> str:
        return f"column {self.at + 1}: {self.text}"


class Token(NamedTuple):
    """`kind` is number, name, text, sign or end; `text` as written (of a text: what it says)."""

    kind: str
    text: str
    at: int

    @property
    def in_words(self) -> str:
        """As an error names it."""
        return "the end" if self.kind == "end" else f"'{self.text}'"


def tokens(text: str) -> list[Token]:
    """All tokens, the last of kind `end`. Raises ExpressionError."""
    if len(text) > LONGEST_TEXT:
        raise ExpressionError(LONGEST_TEXT, f"has {len(text)} characters; write it with at most {LONGEST_TEXT}")
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        wrong = text[at : at + 2] if text[at : at + 2] in ("<>", "**") else None
        if match is None or wrong:
            raise ExpressionError(at, _unknown(text, at))
        kind, written = str(match.lastgroup), match.group()
        if kind == "text":
            written = _said(written, at)
        if kind != "blank":
            found.append(Token(kind, written, at))
        at = match.end()
    return [*found, Token("end", "", len(text))]


def _said(written: str, at: int) -> str:
    for escape in _ESCAPE.finditer(written):
        if escape.group(1) not in "\\'\"":
            text = f"'{escape.group()}' is no escape; there are \\\\, \\' and \\\""
            raise ExpressionError(at + escape.start(), text)
    said = _ESCAPE.sub(r"\1", written[1:-1])
    if not said.isprintable():
        raise ExpressionError(at, "this text holds characters that cannot be printed; leave them out")
    return said


def _unknown(text: str, at: int) -> str:
    for length in (2, 1):
        if text[at : at + length] in _INSTEAD:
            return _INSTEAD[text[at : at + length]]
    return f"{text[at]!r} means nothing here; there are + - * / < <= > >= == != and or not ( )"
