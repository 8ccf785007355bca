"""An operator as an agent would have it: in a registry that checks that operators leave alone what is not theirs."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from node_agent.operators import api
from node_agent.operators.codecs import CodecError
from node_agent.operators.registry import Registry
from node_agent.operators.signature import OperatorError, signature_of

Operator = Callable[..., Any] | str  # a class or function under @operator or @aggregate, or an installed one's name


def loaded(operator: Operator) -> tuple[Registry, str]:
    """A registry with that operator, and its name there. Raises OperatorError."""
    if isinstance(operator, str):
        return with_codecs(Registry(checks=True)), operator
    return with_codecs(Registry(checks=True, operators=[operator])), signature_of(operator).name


def with_codecs(registry: Registry) -> Registry:
    """The registry, and in it what this program has declared by `codec(...)`, as a client has it."""
    known = set(registry.codecs.names())
    for name, message in {each.name: each.message for each in api.declared_codecs}.items():
        if name not in known:
            registry.codecs.add(name, message)
    return registry


def as_json(name: str, given: Mapping[str, Any]) -> str:
    """The parameters as a plan carries them. Raises OperatorError."""
    try:
        return json.dumps(dict(given))
    except (TypeError, ValueError) as error:
        raise OperatorError(
            "parameters_not_json", f"{name}: the parameters are not JSON: {error}", subject=name
        ) from None


def check_type(registry: Registry, type_: str, value: Any, what: str) -> None:
    """That a value could come or go on a stream of that type. Raises CodecError, and UnknownCodecError as an agent
    does."""
    if type_ in {"any", "same"}:
        return
    try:
        registry.codecs.get(type_).encode(value)
    except CodecError as error:
        raise CodecError(error.code, f"{what}: {error}", subject=error.problem.subject) from None


__all__ = ["Operator", "as_json", "check_type", "loaded", "with_codecs"]
