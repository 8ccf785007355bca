"""Validates a YAML file against its pydantic model; its errors become `file:line: what is wrong, and the mend`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from coordinator import key_mistakes
from coordinator.errors import BadInputError, Mistake, MistakeError, Problem
from coordinator.spec.files.yaml_source import Source, nearest

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
