"""Reading a YAML file that a user wrote: line numbers kept, duplicate keys refused, problems gathered and worded.

ruamel.yaml is used for its line numbers and because it refuses duplicate keys; PyYAML was rejected: it takes the last
of two keys silently, and reads `on:` as true. pydantic validates; its errors are turned into `file:line: what is
wrong, and the mend`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from coordinator import key_mistakes
from coordinator.error_codes import Code
from coordinator.errors import BadInputError, Mistake, MistakeError, Problem

LARGEST_FILE = 1 << 20
SHAPES = {
    "list_type": "a list",
    "tuple_type": "a list of two",
    "dict_type": "keys and values",
    "model_type": "keys and values",
    "model_attributes_type": "keys and values",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
}  # pydantic's names of what a value should have been
LIKE = {
    "links": "[{between: [a, b], latency: 1 ms}]",
    "between": "[a, b]",
    "at_most": "[[20, 10]]: of any 20 inputs in a row at most 10 pass",
    "forbid_streams": "[[a, b]]: not from a to b",
    "forbid_nodes": "[a, b]",
    "nodes": "[a, b]",
    "arrival": "{burst: 10, period: 500 ms}",
    "jcp": "{period: 100 ms}",
    "selectivity": "{mean: 0.5}",
    "side": "{ego: ego}",
    "with": "{min_speed: 1.0}",
    "window": "{time: 5 s}, {count: 100} or {size: my.function, most: 20 s}",
    "degrade": "{run: NAME, cost: 0.2 ms}",
    "charges": "{decision: 20 us, drain: 20 us, side: 5 us}, as 'node-agent charges' prints it",
    "emulate": "{cost_per_tuple: 1 ms}",
    "rate": "50 (a second)",
    "queue": "{most: 1 MiB} or {most: 1 MiB, on_full: front}",
    "sync": "all, {on: all, timeout: 50 ms} or {within: 20 ms}",
}
LIKE_SECTION = {
    "nodes": "a: {address: '127.0.0.1:7700'}",
    "sources": "belt: {at: a, type: json, arrival: {burst: 1, period: 1 s}}",
    "operators": "weigh: {run: my.weigh, in: belt}",
    "outputs": "arm: {from: weigh, at: b, deadline: 200 ms}",
}  # where the key stands at the top of the file
KINDS = (("placement", "plan"), ("sources", "query"), ("nodes", "cluster"), ("costs", "costs file"))  # by a key of each
NAMES = {"query": "query.yaml", "cluster": "cluster.yaml", "costs file": "costs.yaml"}
Model = TypeVar("Model", bound=BaseModel)


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
    try:
        data = YAML(typ="rt").load(raw.decode("utf-8"))
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
    except (YAMLError, ValueError, RecursionError) as error:
        raise refuse("not_yaml", 1, f"is not YAML: {str(error).splitlines()[0]}", "write it as UTF-8 text") from error
    if data is None:
        raise refuse("empty_file", 1, "is empty", "begin it with 'shimekiri: 1'")
    if not isinstance(data, Mapping):
        raise refuse("no_keys", 1, "is not YAML with keys at its top", "begin it with 'shimekiri: 1'")
    return Source(path, raw, data)


def validate(source: Source, model: type[Model], not_yet: Mapping[str, str]) -> Model:
    """The file's data as `model`. Raises BadInputError with every problem; keys in `not_yet` are named as not available
    yet."""
    if other := _of_another_kind(source.data, model):
        raise BadInputError([Problem(other, str(source.path))])
    try:
        return model.model_validate(source.data)
    except ValidationError as error:
        if found := key_mistakes.indented_section(source.data, fields(model, [])):
            source.add(*found)  # what else is wrong may come of it
            raise BadInputError(source.problems) from error
        listed = [(item, _keys(item)) for item in error.errors()]
        meant = {(*keys[:-1], key_mistakes.glued(keys)) for item, keys in listed if item["type"] == "extra_forbidden"}
        for item, keys in listed:
            if keys[-1:] == ["str"] and isinstance(item.get("input"), list):
                continue  # the other way to write a chain; what is wrong with the list is told
            if item["type"] != "missing" or tuple(keys) not in meant:
                source.add(keys, _mistake(item, keys, model, not_yet))
        raise BadInputError(source.problems) from error


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


def _keys(item: Any) -> list[Any]:
    """Where pydantic found something: the keys of the file."""
    return [part for part in item["loc"] if part != "[key]" and not _branch(part)]


def _of_another_kind(data: Mapping[str, Any], model: type[BaseModel]) -> Mistake | None:
    """Where the file is of another kind altogether, by the keys at its top: which one."""
    own, wanted = next((key, kind) for key, kind in KINDS if key in model.model_fields)
    if "placement" not in data and own in data:
        return None
    for key, kind in KINDS:
        if key in data and key not in model.model_fields:
            file = NAMES[wanted]
            return Mistake("file_of_another_kind", f"is a {kind}, not a {wanted}", f"give a {file}")
    return None


def _branch(part: object) -> bool:
    """Pydantic's name for one of several ways to write a value: no key of the file."""
    return isinstance(part, str) and part.startswith(("list[", "dict[", "function-"))


def _mistake(item: Any, keys: list[Any], model: type[BaseModel], not_yet: Mapping[str, str]) -> Mistake:
    """What pydantic found, in the product's words."""
    where = ".".join(str(key) for key in keys)
    kind, name = item["type"], str(keys[-1]) if keys else ""
    text = str(item["msg"]).removeprefix("Value error, ")
    if kind == "extra_forbidden":
        if name in not_yet:
            return Mistake.of("not_available_yet", f"{where} is not available yet: {not_yet[name]}")
        mend = key_mistakes.instead(keys) or nearest(name, fields(model, keys[:-1]))
        return Mistake("unknown_key", f"{where} is not known here", mend)
    if kind == "missing" and not isinstance(keys[-1], int):
        return Mistake("missing_key", f"{where} is missing", f"add '{name}:{' 1' if name == 'shimekiri' else ''}'")
    if kind == "literal_error" and where == "shimekiri":
        known = item["ctx"]["expected"]
        given = _short(item.get("input"))
        text = f"is written for version {given}, this release reads {known}"
        return Mistake("other_version", text, f"write 'shimekiri: {known}'")
    if kind == "value_error":
        error = item["ctx"]["error"]
        found = error.mistake if isinstance(error, MistakeError) else Mistake.of("bad_value", text)
        return found.within(where, " ") if where else found
    got = _short(item.get("input"))
    return (
        _shaped(item, keys, where, got)
        or key_mistakes.out_of_range(item, where, got)
        or key_mistakes.of_no_choice(item, where, got)
        or Mistake("bad_value", f"{where}: {text[0].lower()}{text[1:]}, got {got}", "correct it")
    )


def _shaped(item: Any, keys: list[Any], where: str, got: str) -> Mistake | None:
    """A value of another shape than it should have: what to write."""
    kind = item["type"]
    if kind == "missing":
        return Mistake("wrong_shape", f"{where} is missing", f"write {SHAPES['tuple_type']}")
    if kind == "finite_number":
        return Mistake("not_finite", f"{where} is not a finite number", "write one")
    if kind == "string_pattern_mismatch":
        mend = "begin it with a letter or '_', then letters, digits, '_' and '-'"
        return Mistake("bad_name", f"{where}: {got} is not a name", mend)
    if kind == "too_long" and item["ctx"].get("field_type") == "Tuple":
        kind = "tuple_type"
    if kind not in SHAPES:
        return None
    key = next((str(part) for part in reversed(keys) if not isinstance(part, int)), "")
    likely = LIKE_SECTION.get(key) if len(keys) == 1 else None
    like = f", like {likely or LIKE[key]}" if likely or key in LIKE else ""
    return Mistake("wrong_shape", f"{where} is {got}", f"write {SHAPES[kind]}{like}")


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__
    return {"CommentedMap": "a mapping", "CommentedSeq": "a list", "dict": "a mapping", "list": "a list"}.get(
        text, text[:40]
    )


def fields(model: type[BaseModel], keys: list[Any]) -> list[str]:
    """The keys that may stand where `keys` lead to, found by walking the model's annotations."""
    current: Any = model
    for key in keys:
        current = _below(current, key)
    current = _model_in(current)
    return [info.alias or name for name, info in current.model_fields.items()] if current else []


def _below(annotation: Any, key: Any) -> Any:
    """The annotation of what stands under `key` in a value of this annotation; None where it cannot be told."""
    found = _model_in(annotation, through_containers=False)
    if found:
        return next((info.annotation for name, info in found.model_fields.items() if (info.alias or name) == key), None)
    for part in (annotation, *getattr(annotation, "__args__", ())):
        if get_origin(part) in (dict, list, tuple):
            return get_args(part)[-1]
    return None


def _model_in(annotation: Any, through_containers: bool = True) -> type[BaseModel] | None:
    """The pydantic model inside M | None or Annotated[M, ...], and inside dict[str, M] or list[M] if asked."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (dict, list) and not through_containers:
        return None
    for inner in get_args(annotation):
        found = _model_in(inner, through_containers)
        if found:
            return found
    return None
