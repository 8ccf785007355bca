"""Finds operators and makes instances of them. Nothing here comes from the wire but names and parameters.

Sources, in this order: built in; files that the machine's owner names on the command line; entry points of installed
packages (group `shimekiri.operators`, name = "module:object"), loaded when first named. A broken package makes its own
operators unavailable and nothing else; a broken file is an error at once, since its owner stands before it.
"""

import difflib
import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from node_agent.core import plan as plans
from node_agent.core.windows import results, window_join
from node_agent.core.windows.accumulator import Aggregate
from node_agent.core.windows.aggregates import Grouped, Together, Users, field
from node_agent.core.windows.results import Collecting, result
from node_agent.core.windows.window_join import Join
from node_agent.operators import api
from node_agent.operators.builtin import BUILTIN, HANDS_ON
from node_agent.operators.codecs import JSON, Codec, Codecs
from node_agent.operators.entry_points import Discover, Offers, installed
from node_agent.operators.hop import Checking, fitting
from node_agent.operators.mutation_check import MutationCheckedAggregate, with_mutation_check
from node_agent.operators.signature import Bound, OperatorError, Signature, signature_of
from node_agent.operators.source_call import SourceCall
from node_agent.operators.source_code import Sources
from protos import digests

GROUP = "shimekiri.operators"
VERSION = 1


class Registry:
    """The operators and codecs of this machine.

    files: Python files with operators (`--operators`). Raises OperatorError (file:line: what is wrong) for a bad one.
    checks: operators that change their input, or what they gave out, raise (see `with_mutation_check`), and all that a
    plan's operators give is encoded and decoded (see `hop`); `checking` tells what that takes. operators: further
    classes and functions under `@operator`.
    """

    def __init__(
        self,
        files: Iterable[str | Path] = (),
        discover: Discover = installed,
        checks: bool = False,
        operators: Iterable[Callable[..., Any]] = (),
    ) -> None:
        self._discover = discover
        self.checking = Checking() if checks else None
        self._offers: Offers | None = None
        self._signatures: dict[str, Signature] = {}
        self._broken: dict[str, str] = {}
        self._identities: dict[str, plans.Identity] = {}
        self._sources = Sources()
        self.codecs = Codecs(discover=discover)
        for implementation in (*BUILTIN, *operators):
            self._add(implementation)
        for file in files:
            self._load_file(Path(file))

    def names(self) -> list[str]:
        """Every operator, available or not, sorted."""
        return sorted({*self._signatures, *self._offered()})

    def signature(self, run: str) -> Signature:
        """What the operator looks like. Raises OperatorError where it is unknown or cannot be loaded."""
        signature = self._signatures.get(run)
        if signature is not None:
            return signature
        if run in self._broken:
            raise OperatorError("not_loaded", self._broken[run], subject=run)
        offer = self._offered().get(run)
        if offer is None:
            close = difflib.get_close_matches(run, self.names(), n=1)
            like = f" (the nearest is {close[0]!r})" if close else ""
            raise OperatorError(
                "unknown_operator",
                f"no operator {run!r} is installed here{like}",
                "give its file with --operators FILE.py",
                subject=run,
            )
        try:
            implementation = offer[1]()
            signature = signature_of(implementation)
            if signature.name != run:
                raise OperatorError("other_name", f"it calls itself {signature.name!r}", subject=signature.name)
        except (Exception, SystemExit) as error:  # a foreign module may raise anything while it is imported
            self._broken[run] = f"operator {run!r} ({offer[0]}) cannot be loaded: {_describe(error)}"
            raise OperatorError("not_loaded", self._broken[run], subject=run) from error
        self._keep(signature)
        return signature

    def identity(self, run: str) -> plans.Identity:
        """Of what is loaded, even if its file has changed since. Raises OperatorError, as `signature`."""
        self.signature(run)
        return self._identities[run]

    def check(self, planned: plans.Identity) -> None:
        """Raises OperatorError where what is loaded is not what was planned."""
        own = self.identity(planned.run)
        if own != planned:
            raise OperatorError(
                "other_code",
                f"{planned.run} is planned as {planned}, and loaded here is {own}",
                "start again with the operators that were planned, or write operators.json anew and plan again",
                subject=planned.run,
            )

    def loaded(self) -> list[tuple[plans.Identity, dict[Path, str]]]:
        """What is loaded so far, and the files that it is made of, with the hashes that they had."""
        signatures = (
            (self._identities[name], signature.implementation) for name, signature in self._signatures.items()
        )
        return [(identity, self._sources.files(made, _beside(made))) for identity, made in signatures]

    def keeps_state(self, run: str) -> bool:
        """Whether an instance may remember what it was called with. Raises OperatorError, as `signature`."""
        return isinstance(self.signature(run).implementation, type)

    def create(self, run: str, with_json: str = "{}", inputs: Sequence[str] = ()) -> Any:
        """A fresh instance. with_json: its parameters, a JSON object; inputs: names of its input streams, in order.

        Raises OperatorError: unknown operator, wrong parameters, wrong number of inputs, or a constructor that raises.
        """
        signature = self.signature(run)
        try:
            given = json.loads(with_json or "{}")
        except ValueError as error:
            raise OperatorError(
                "parameters_not_json", f"{run}: the parameters are not JSON: {error}", subject=run
            ) from None
        return signature.create(given, tuple(inputs))

    def make(self, run: str, with_json: str = "{}", inputs: Sequence[str] = ()) -> Bound:
        """A fresh instance with what the engine calls: `create` and then `bind`."""
        signature = self.signature(run)
        if signature.kind == "aggregate":
            raise OperatorError(
                "aggregate_without_window",
                f"{run} is an aggregate, which needs a window",
                "write 'window: {time: 5 s}'",
                subject=run,
            )
        if not signature.declaration.inputs:
            raise OperatorError("source_as_operator", f"{run} is a source, which runs under 'sources:'", subject=run)
        bound = signature.bind(self.create(run, with_json, inputs))
        if self.checking is None:
            return bound
        return bound._replace(call=with_mutation_check(run, bound.call, bound.plain, self.checking.timed))

    def calls(
        self, operator: plans.Operator, inputs: Sequence[str], codec: Codec = JSON
    ) -> tuple[Callable[..., Any], bool]:
        """What a plan's operator runs, as the engine is loaded with it. inputs: what its query calls them, in order.
        codec: of the stream of its results.

        Of a window operator it is what its windows are made with, of one that closes windows what makes their results.
        Raises OperatorError, as `make`.
        """
        if operator.window is not None:
            return self.collecting(operator.run, operator.with_json, operator.window, inputs), False
        if operator.closes:
            return fitting(operator.run, result, True, codec, self.checking), True
        return self._fitted(operator.run, self.make(operator.run, operator.with_json, inputs), codec)

    def _fitted(self, run: str, bound: Bound, codec: Codec) -> tuple[Callable[..., Any], bool]:
        if self.checking is None and self.signature(run).implementation in HANDS_ON:
            return bound.call, bound.plain
        return fitting(run, bound.call, bound.plain, codec, self.checking), bound.plain

    def source_call(self, run: str, with_json: str, codec: Codec) -> SourceCall:
        """What a plan's source calls, with a fresh instance. Raises OperatorError, as `create`, and for an operator."""
        signature = self.signature(run)
        if signature.kind not in ("source", "iterator"):
            raise OperatorError("no_source_function", f"{run} is an operator, not a source", subject=run)
        instance = self.create(run, with_json)
        if signature.kind == "source":
            return SourceCall.of(run, instance, signature.wants_at, codec)
        return SourceCall.over(run, lambda: iter(instance if self.keeps_state(run) else instance()), codec)

    def variant(
        self, operator: plans.Operator, inputs: Sequence[str], codec: Codec = JSON
    ) -> tuple[Callable[..., Any], bool]:
        """What runs in a plan's operator's place on what is late for it. Raises OperatorError, as `make`, and where it
        takes other inputs."""
        assert operator.late is not None
        bound = self.make(operator.late.run, operator.late.with_json, inputs)
        ports = {port for port, _ in operator.sides}
        if bound.joins != operator.join or not ports.issuperset(bound.sides):
            raise OperatorError(
                "other_inputs",
                f"{operator.late.run} cannot run in place of {operator.run}: its inputs are others",
                subject=operator.late.run,
            )
        return self._fitted(operator.late.run, bound, codec)

    def collecting(
        self, run: str, with_json: str, window: plans.Window, inputs: Sequence[str] = ("left", "right")
    ) -> Collecting:
        """The aggregate of a window operator, and how long its windows are where the data says so. Raises
        OperatorError."""
        size = None
        if window.size:
            bound = self.make(window.size)
            if not bound.plain or self.signature(window.size).kind != "map":
                raise OperatorError(
                    "wrong_window_length",
                    f"{window.size}: what says how long a window is takes one tuple and nothing else",
                    subject=window.size,
                )
            size = bound.call
        return Collecting(self.aggregate(run, with_json, window, inputs), size)

    def aggregate(
        self, run: str, with_json: str, window: plans.Window, inputs: Sequence[str] = ("left", "right")
    ) -> Aggregate:
        """A fresh aggregate of that window's feeds, each of which is one of its sources, in their order. run: `join`,
        where the window has keys, or an installed aggregate; inputs: of a join, as its query calls them. Raises
        OperatorError."""
        inner: Aggregate
        try:
            if window.on:
                if run != "join":
                    raise OperatorError("no_join", f"{run} joins no two streams", "write 'run: join'", subject=run)
                left, right = (field(path) for path in window.on)
                of_right = frozenset(i for i, (_, number) in enumerate(window.feeds) if number)
                one, two = inputs
                inner = Join((left, right), len(window.feeds), of_right, names=(one, two))
            elif self.signature(run).kind != "aggregate":
                raise OperatorError(
                    "no_aggregate",
                    f"{run} is no aggregate, and a window needs one",
                    "write 'run: aggregate'",
                    subject=run,
                )
            else:
                own = self.create(run, with_json)
                if isinstance(own, Together):
                    inner = own
                else:
                    inner = Users(MutationCheckedAggregate(run, own) if self.checking else own, len(window.feeds))
            return Grouped(field(window.by), inner) if window.by else inner
        except ValueError as error:
            raise OperatorError("wrong_window", f"{run}: {error}", subject=run) from None

    def describe(self) -> dict[str, Any]:
        """operators.json: what a planner may name. Loads everything; what cannot be is under `unavailable`, and why."""
        operators: dict[str, Any] = {}
        unavailable: dict[str, str] = {}
        for name in self.names():
            try:
                own = self.identity(name)
                operators[name] = {"version": own.version, "code": own.code, **self.signature(name).describe()}
            except OperatorError as error:
                unavailable[name] = str(error)
        described: dict[str, Any] = {
            "shimekiri": VERSION,
            "codecs": self.codecs.names(),
            "fields": self.codecs.fields(),
            "operators": operators,
        }
        if unavailable:
            described["unavailable"] = unavailable
        return described

    def _offered(self) -> Offers:
        if self._offers is None:
            self._offers = self._discover(GROUP)
        return self._offers

    def _add(self, implementation: Callable[..., Any]) -> None:
        signature = signature_of(implementation)
        known = self._signatures.get(signature.name)
        if known is not None and known.implementation is not implementation:
            both = f"{_where(known)} and {_where(signature)}"
            raise OperatorError(
                "operator_twice",
                f"two operators are called {signature.name!r}: {both}",
                "give one of them another name",
                subject=signature.name,
            )
        self._keep(signature)

    def _keep(self, signature: Signature) -> None:
        name, made = signature.name, signature.implementation
        self._signatures[name] = signature
        self._identities[name] = plans.Identity(
            name, signature.declaration.version, self._sources.code(made, _beside(made))
        )

    def _load_file(self, path: Path) -> None:
        codecs_before = len(api.declared_codecs)
        module = _run_file(path, self._sources)
        try:
            marked = [value for value in vars(module).values() if api.DECLARATION in getattr(value, "__dict__", ())]
            for implementation in marked:
                if implementation not in BUILTIN:
                    self._add(implementation)
            declared = api.declared_codecs[codecs_before:]
            for declaration in declared:
                self.codecs.add(declaration.name, declaration.message)
        except (OperatorError, TypeError, ValueError) as error:
            del api.declared_codecs[codecs_before:]
            if isinstance(error, OperatorError):
                raise OperatorError(error.code, str(error), subject=error.mistake.subject, file=path) from error
            raise OperatorError("not_declared", str(error), file=path) from error
        if not marked and not declared:
            raise OperatorError(
                "declares_nothing", "declares no operator", "write @operator(...) above a class or function", file=path
            )


def _beside(implementation: Callable[..., Any]) -> tuple[ModuleType, ...]:
    """What belongs to the built-in operators beside the modules that define them."""
    return (window_join, results) if implementation in BUILTIN else ()


def _run_file(path: Path, sources: Sources) -> ModuleType:
    if not path.is_file():
        raise OperatorError("no_file", "no such file of operators", file=path)
    full = path.resolve()
    name = f"shimekiri_file_{full.stem}_{digests.sha256(str(full).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, full)
    if spec is None or spec.loader is None:
        raise OperatorError("not_python", "not a Python file", "its name must end in .py", file=path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if str(full.parent) not in sys.path:
        sys.path.append(str(full.parent))  # generated messages beside it; last, so that it can hide nothing
    try:
        source = full.read_bytes()
        sources.hold(full, source)
        exec(compile(source, str(full), "exec"), module.__dict__)  # noqa: S102 - not the bytecode of what was there before
    except Exception as error:  # the file may do anything
        sys.modules.pop(name, None)
        raise OperatorError("raised", _why(error), file=path, line=_line(error, str(full))) from error
    return module


def _line(error: Exception, file: str) -> int:
    import traceback

    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno or 1
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return (lines[-1] if lines else 1) or 1


def _describe(error: BaseException) -> str:
    return str(error) if isinstance(error, OperatorError) else f"{type(error).__name__}: {error}"


def _why(error: Exception) -> str:
    """Why a file of operators cannot be run, and what to do where that is plain."""
    if isinstance(error, SyntaxError):
        return f"not Python: {error.msg}; correct this line, or the one above"
    if isinstance(error, ModuleNotFoundError):
        return f"{_describe(error)}; install it for {sys.executable}, or put it beside this file"
    return _describe(error)


def _where(signature: Signature) -> str:
    """Its name in the code, with the file, and the line where it is a function; classes do not know theirs."""
    made = signature.implementation
    module, code = sys.modules.get(made.__module__), getattr(made, "__code__", None)
    line = f":{code.co_firstlineno}" if code is not None else ""
    return f"{getattr(made, '__qualname__', '?')} of {getattr(module, '__file__', made.__module__)}{line}"
