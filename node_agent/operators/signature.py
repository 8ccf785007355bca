"""What an operator's class or function looks like, checked once at load, and the cheapest way to call it."""

import functools
import inspect
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from node_agent.operators.api import DECLARATION, Declaration
from node_agent.problems import ProblemError

_TYPES: Mapping[Any, str] = {float: "number", int: "integer", str: "string", bool: "boolean"}
_OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class OperatorError(ProblemError):
    """An operator that cannot be found, loaded or made; the message is for its author."""


class Parameter(NamedTuple):
    """One parameter of `with:`. type: number, integer, string, boolean or any."""

    type: str
    required: bool
    default: Any


class Bound(NamedTuple):
    """What the engine calls.

    plain: `call(payload)`. Otherwise `call(inputs, sides, at)`: inputs a tuple in the declared order, sides a dict of
    the side inputs that the plan connects, at an `sdk.At`.
    """

    call: Callable[..., Any]
    plain: bool
    wants_at: bool
    sides: tuple[str, ...]
    joins: bool
    instance: Any


class Signature(NamedTuple):
    """An operator's declaration together with what its code accepts."""

    declaration: Declaration
    implementation: Callable[..., Any]
    wants_at: bool
    parameters: Mapping[str, Parameter]

    @property
    def name(self) -> str:
        """What a query names after `run:`."""
        return self.declaration.name

    @property
    def kind(self) -> str:
        """map: one input triggers. join: all inputs of one lineage trigger. union: every input triggers. aggregate: of
        the tuples of a window. source: called at ticks; iterator: at its own pace."""
        if not self.declaration.inputs:
            return "iterator" if _iterates(self.implementation) else "source"
        if self.declaration.aggregate:
            return "aggregate"
        if self.declaration.union:
            return "union"
        return "join" if self.declaration.variadic or len(self.declaration.inputs) > 1 else "map"

    def describe(self) -> dict[str, Any]:
        """The operator's entry in operators.json."""
        declared = self.declaration
        described: dict[str, Any] = {
            "version": declared.version,
            "kind": self.kind,
            "inputs": dict(declared.inputs),
            "side": dict(declared.side),
            "output": declared.output,
            "with": {
                name: {"type": each.type, "default": each.default, "required": each.required}
                for name, each in self.parameters.items()
            },
        }
        if declared.variadic:
            described["variadic"] = True
        if declared.open:
            described["open"] = True
        return described

    def create(self, given: Any, inputs: tuple[str, ...]) -> Any:
        """An instance; see `Registry.create`."""
        values = self._checked(given)
        declared = self.declaration
        if declared.open:
            return self._construct(values)
        if declared.variadic:
            if len(inputs) < 2:
                raise OperatorError(
                    "wrong_number_of_inputs",
                    f"{self.name} needs two inputs or more, not {len(inputs)}",
                    subject=self.name,
                )
            return self._construct(inputs, **values)
        if inputs and len(inputs) != len(declared.inputs):
            raise OperatorError(
                "wrong_number_of_inputs",
                f"{self.name} takes {len(declared.inputs)} inputs, not {len(inputs)}",
                subject=self.name,
            )
        if isinstance(self.implementation, type):
            return self._construct(**values)
        return functools.partial(self.implementation, **values) if values else self.implementation

    def bind(self, instance: Any) -> Bound:
        """How the engine calls that instance."""
        sides, joins = tuple(self.declaration.side), self.kind == "join"
        call = instance.__call__ if isinstance(self.implementation, type) else instance
        plain = not (self.wants_at or sides or joins)
        adapted = call if plain else _adapt(call, self.wants_at, sides)
        return Bound(adapted, plain, self.wants_at, sides, joins, instance)

    def _construct(self, *arguments: Any, **values: Any) -> Any:
        try:
            return self.implementation(*arguments, **values)
        except (Exception, SystemExit) as error:  # the author's code; nothing of it ends the process
            raise OperatorError("raised", f"{self.name}: {type(error).__name__}: {error}", subject=self.name) from error

    def _checked(self, given: Any) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise OperatorError(
                "wrong_shape", f"{self.name}: the parameters must be an object, not {given!r}", subject=self.name
            )
        if self.declaration.open:
            return given
        for name in given:
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise OperatorError(
                    "unknown_parameter", f"{self.name} has no parameter {name!r}", f"it has: {known}", subject=name
                )
        for name, parameter in self.parameters.items():
            if parameter.required and name not in given:
                raise OperatorError(
                    "missing_parameter",
                    f"{self.name}: parameter {name!r} is missing",
                    "add it under 'with:'",
                    subject=name,
                )
        return {name: self._fit(name, value) for name, value in given.items()}

    def _fit(self, name: str, value: Any) -> Any:
        wanted = self.parameters[name].type
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and not math.isfinite(value):
            raise OperatorError(
                "not_finite", f"{self.name}: parameter {name!r} is {value}, which is no number", subject=name
            )
        if wanted == "number" and is_number:
            return float(value)
        fits = {
            "any": True,
            "number": False,
            "integer": is_number and isinstance(value, int),
            "string": isinstance(value, str),
            "boolean": isinstance(value, bool),
        }
        if not fits[wanted]:
            raise OperatorError(
                "parameter_type",
                f"{self.name}: parameter {name!r} must be of type {wanted}, not {value!r}",
                subject=name,
            )
        return value


def _adapt(call: Callable[..., Any], wants_at: bool, sides: tuple[str, ...]) -> Callable[..., Any]:
    """call(inputs, sides, at) for the given one; a side input that the plan leaves out is None."""
    blank = dict.fromkeys(sides)
    if sides and wants_at:
        return lambda inputs, given, at: call(*inputs, at=at, **{**blank, **given})
    if sides:
        return lambda inputs, given, at: call(*inputs, **{**blank, **given})
    if wants_at:
        return lambda inputs, given, at: call(*inputs, at=at)
    return lambda inputs, given, at: call(*inputs)


def signature_of(implementation: Any) -> Signature:
    """Check a class or function against its declaration. Raises OperatorError where the two do not fit."""
    declared = getattr(implementation, "__dict__", {}).get(DECLARATION)
    if not isinstance(declared, Declaration):
        raise OperatorError(
            "no_operator",
            f"{implementation!r} is no operator",
            "write @operator(...) above it",
            subject=repr(implementation),
        )
    is_class = isinstance(implementation, type)
    if declared.aggregate:
        return _aggregate(declared, implementation)
    if not declared.inputs:
        return _source(declared, implementation)
    if is_class and "__call__" not in dir(implementation):
        takes = ", ".join(["self", *declared.inputs])
        raise OperatorError(
            "missing_method",
            f"{declared.name}: class {implementation.__name__} has no __call__",
            f"add 'def __call__({takes})'",
            subject=declared.name,
        )
    function = implementation.__call__ if is_class else implementation
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise OperatorError(
            "not_ordinary",
            f"{declared.name}: must be an ordinary function",
            "return Many(x, y) for several results",
            subject=declared.name,
        )
    wants_at, extra = _check_call(declared, _parameters(function, declared.name)[1 if is_class else 0 :])
    if is_class and extra:
        raise OperatorError(
            "unknown_argument",
            f"{declared.name}: __call__ takes {extra[0].name!r}, which is neither a side input nor 'at'",
            subject=extra[0].name,
        )
    if is_class:
        extra = _of_init(declared, implementation)
        if declared.variadic:
            extra = extra[1:]  # the names of the input streams
    return Signature(declared, implementation, wants_at, _with(declared.name, extra))


def _iterates(implementation: Any) -> bool:
    """Whether a source has a pace of its own."""
    if isinstance(implementation, type):
        return "__iter__" in dir(implementation)
    return inspect.isgeneratorfunction(implementation)


def _source(declared: Declaration, implementation: Any) -> Signature:
    is_class, iterates = isinstance(implementation, type), _iterates(implementation)
    method = "__iter__" if iterates else "__call__"
    if is_class and method not in dir(implementation):
        raise OperatorError(
            "missing_method",
            f"{declared.name}: class {implementation.__name__} has neither __call__ nor __iter__",
            "add 'def __call__(self)', which gives a value at each tick",
            subject=declared.name,
        )
    function = getattr(implementation, method) if is_class else implementation
    generates = inspect.isgeneratorfunction(function)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function) or (generates and not iterates):
        raise OperatorError(
            "not_ordinary",
            f"{declared.name}: must be an ordinary function",
            "name it __iter__ where it yields" if generates else "leave out 'async'",
            subject=declared.name,
        )
    rest = _parameters(function, declared.name)[1 if is_class else 0 :]
    takes_tick = not iterates and any(each.name == "tick" for each in rest)
    extra = [each for each in rest if iterates or each.name != "tick"]
    if is_class and extra:
        raise OperatorError(
            "unknown_argument",
            f"{declared.name}: {method} takes {extra[0].name!r}, which a source is not given",
            subject=extra[0].name,
        )
    if is_class:
        extra = _of_init(declared, implementation)
    return Signature(declared, implementation, takes_tick, _with(declared.name, extra))


def _aggregate(declared: Declaration, implementation: Any) -> Signature:
    if declared.open:  # the built-in one, which is told of the source as well
        return Signature(declared, implementation, False, {})
    for method, count in (("start", 0), ("add", 2), ("result", 1)):
        function = getattr(implementation, method, None)
        if not callable(function) or inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise OperatorError(
                "missing_method", f"{declared.name}: an aggregate needs an ordinary method {method!r}", subject=method
            )
        positional = [each for each in _parameters(function, declared.name)[1:] if each.kind not in _OPEN]
        if len(positional) != count:
            raise OperatorError(
                "wrong_number_of_arguments",
                f"{declared.name}: {method} takes {len(positional)} arguments, not {count}",
                subject=method,
            )
    return Signature(declared, implementation, False, _with(declared.name, _of_init(declared, implementation)))


def _of_init(declared: Declaration, implementation: Any) -> list[inspect.Parameter]:
    """What a class is made with."""
    own = implementation.__init__ is not object.__init__
    return _parameters(implementation.__init__, declared.name)[1:] if own else []


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function, eval_str=True).parameters.values())
    except (NameError, TypeError, ValueError) as error:
        raise OperatorError("no_signature", f"{name}: cannot read the signature: {error}", subject=name) from error


def _check_call(declared: Declaration, parameters: list[inspect.Parameter]) -> tuple[bool, list[inspect.Parameter]]:
    """Whether it wants `at`, and the parameters that are neither inputs, side inputs nor `at`."""
    if declared.variadic:
        return False, []
    count = len(declared.inputs)
    positional = [each for each in parameters if each.kind not in (*_OPEN, inspect.Parameter.KEYWORD_ONLY)]
    inputs = [each for each in positional if each.name not in declared.side and each.name != "at"][:count]
    if len(inputs) != count or positional[:count] != inputs:
        ports = ", ".join(declared.inputs)
        raise OperatorError(
            "wrong_number_of_arguments",
            f"{declared.name}: takes {len(inputs)} positional arguments for its inputs ({ports})",
            subject=declared.name,
        )
    rest = {each.name: each for each in parameters if each not in inputs}
    if any(each.kind in _OPEN for each in rest.values()):
        raise OperatorError(
            "open_arguments", f"{declared.name}: name the arguments instead of * and **", subject=declared.name
        )
    for port in declared.side:
        if rest.pop(port, None) is None:
            raise OperatorError(
                "missing_side_input",
                f"{declared.name}: does not take its side input {port!r}",
                f"add the argument {port}",
                subject=port,
            )
    wants_at = rest.pop("at", None) is not None
    return wants_at, list(rest.values())


def _with(name: str, parameters: list[inspect.Parameter]) -> dict[str, Parameter]:
    """The parameters of `with:`."""
    found = {}
    for each in parameters:
        if each.kind in _OPEN or each.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise OperatorError(
                "open_arguments", f"{name}: name the parameters of __init__ instead of * and **", subject=name
            )
        required = each.default is inspect.Parameter.empty
        default = None if required else each.default
        try:
            json.dumps(default, allow_nan=False)
        except (TypeError, ValueError):
            raise OperatorError(
                "default_not_json",
                f"{name}: the default of parameter {each.name!r} cannot be written as JSON",
                subject=each.name,
            ) from None
        found[each.name] = Parameter(_TYPES.get(each.annotation, "any"), required, default)
    return found
