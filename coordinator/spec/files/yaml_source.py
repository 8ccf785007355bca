"""Reads a YAML file that a user wrote: line numbers stay known, duplicate keys are refused, problems are gathered.

ruamel.yaml is used for its line numbers and because it refuses duplicate keys; PyYAML was rejected: it takes the last
of two keys silently, and reads `on:` as true. What the file has to say is validated in `validation`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from coordinator.error_codes import Code
from coordinator.errors import BadInputError, Mistake, Problem

LARGEST_FILE = 1 << 20
MOST_OPEN = 64  # brackets, each within the one before


@dataclass
class Source:
    """A parsed file: its name as the user gave it, its bytes, its data with line numbers, and the problems found so
    far."""

    path: Path
    raw: bytes
    data: Any
    problems: list[Problem] = field(default_factory=list)

    def line(self, *keys: object) -> int:
        """The line, from 1, of the value under `keys`; of the nearest enclosing value where a key is missing."""
        line, node = 1, self.data
        for key in keys:
            marks = getattr(node, "lc", None)
            try:
                if isinstance(node, Mapping) and key in node and marks is not None:
                    line, node = marks.key(key)[0] + 1, node[key]
                elif isinstance(node, Sequence) and not isinstance(node, str) and marks is not None:
                    line, node = marks.item(key)[0] + 1, node[int(str(key))]
                else:
                    return line
            except (KeyError, IndexError, ValueError, TypeError, AttributeError):
                return line
        return line

    def place(self, *keys: object) -> str:
        """FILE:LINE of the value under `keys`."""
        return f"{self.path}:{self.line(*keys)}"

    def wrong(self, code: Code, keys: Iterable[object], text: str, mend: str = "") -> None:
        """Note what is wrong with the value under `keys`, and the mend."""
        self.add(keys, Mistake(code, text, mend))

    def add(self, keys: Iterable[object], mistake: Mistake) -> None:
        """Note a mistake at the value under `keys`."""
        self.problems.append(self.problem(tuple(keys), mistake))

    def problem(self, keys: Sequence[object], mistake: Mistake) -> Problem:
        """A mistake at the value under `keys`."""
        return Problem(replace(mistake, subject=".".join(map(str, keys))), str(self.path), self.line(*keys))

    def check(self) -> None:
        """Raises BadInputError with everything noted so far, if anything was."""
        if self.problems:
            raise BadInputError(self.problems)


Edit = Callable[[Source], None]  # changes what was parsed, before it is validated


def nearest(name: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?`, or the list of what there is: the mend of an unknown name."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"there are {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}" if names else "there are none"


def load(path: Path) -> Source:
    """Parses `path`. Raises BadInputError where it is missing, too large, not YAML, empty, not a mapping or repeats a
    key."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        text = f"cannot be read: {error.strerror or error}"
        raise BadInputError([Problem(Mistake("unreadable", text, "give the path of a file"), str(path))]) from error
    return parse(path, raw)


def with_contents(contents: Mapping[Path, bytes]) -> Edit:
    """The edit of files that takes these contents in place of those that were read. Raises BadInputError as `load`."""

    def edit(file: Source) -> None:
        if file.path in contents:
            read = parse(file.path, contents[file.path])
            file.raw, file.data = read.raw, read.data

    return edit


def parse(path: Path, raw: bytes) -> Source:
    """The content of a file. Raises BadInputError as `load`."""
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    def refuse(code: Code, line: int, text: str, mend: str = "") -> BadInputError:
        return BadInputError([Problem(Mistake(code, text, mend), str(path), line)])

    if len(raw) > LARGEST_FILE:
        raise refuse("too_large", 0, f"has {len(raw)} bytes", f"at most {LARGEST_FILE} are read")
    yaml = YAML(typ="rt")
    yaml.Scanner = _bracket_scanner()
    try:
        data = yaml.load(raw.decode("utf-8"))
    except DuplicateKeyError as error:
        key = str(error.problem).split('"')[1] if '"' in str(error.problem) else "?"
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise refuse(
            "key_twice", line, f"'{key}' stands here a second time", "rename or remove one of the two"
        ) from error
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        if "'\\t'" in (error.problem or ""):
            raise refuse("tab", line, "has a tab where YAML takes only spaces", "indent with spaces") from error
        raise refuse("not_yaml", *_syntax(error, line)) from error
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        text = f"is not text: byte 0x{raw[error.start]:02x} is not UTF-8"
        raise refuse("not_text", line, text, "write it as UTF-8 text") from error
    except RecursionError as error:
        raise refuse("not_yaml", 1, "is nested too deep to be read", "write it with fewer levels") from error
    except (YAMLError, ValueError) as error:
        raise refuse("not_yaml", 1, f"is not YAML: {str(error).splitlines()[0]}", "write it as UTF-8 text") from error
    if data is None:
        raise refuse("empty_file", 1, "is empty", "begin it with 'shimekiri: 1'")
    if not isinstance(data, Mapping):
        raise refuse("no_keys", 1, "is not YAML with keys at its top", "begin it with 'shimekiri: 1'")
    return Source(path, raw, data)


def _bracket_scanner() -> type:
    """The library's takes time with the square of the depth of brackets: minutes for a thousand, before Python's own
    limit ends it. This one raises ScannerError where more than MOST_OPEN are open."""
    from ruamel.yaml.scanner import RoundTripScanner, ScannerError

    class BracketScanner(RoundTripScanner):
        def fetch_flow_collection_start(self, TokenClass: Any, to_push: str) -> None:  # noqa: N803 - the library's name
            if len(self.flow_context) == MOST_OPEN:
                text = f"more than {MOST_OPEN} brackets are open"
                raise ScannerError(problem=text, problem_mark=self.reader.get_mark())
            super().fetch_flow_collection_start(TokenClass, to_push)

    return BracketScanner


def _syntax(error: Any, line: int) -> tuple[int, str, str]:
    """The line, what is wrong in it, and the mend; of what has no end, the line where it begins."""
    context, mark = str(error.context or ""), error.context_mark
    begins = mark.line + 1 if mark else line
    if "quoted scalar" in context:
        return begins, "is not YAML: a quotation mark here has no second one", "write the one at the end"
    text = f"is not YAML: {error.problem or context}"
    if "flow" in context:
        return line, text, f"close the bracket that line {begins} opens, or write the comma that is missing"
    return line, text, "correct the indentation or the punctuation here or just above"
