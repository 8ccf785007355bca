"""Where the code makes mistakes: each code with the sentences and the mends that stand beside it.

A mistake is a call, or a pair in a table, that has a code among its arguments and its sentence behind it:
`Mistake("no_node", f"names node '{node}'", "name another")`. What a sentence is filled with is written in capitals.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READS = frozenset({"get", "getattr", "setattr", "hasattr", "isinstance", "pop", "setdefault", "startswith"})
COUNTS = frozenset({"len", "sum", "count"})
OF_CALLS = {  # what functions answer that make a mend
    "nearest": "write one of the names that are there; the message has the nearest one",
    "str": "ERROR",
    "instead": "write one of the names that the message has",
}
ORDER = re.compile(r".*?: ((?:give|write|remove|install|name|run|choose|keep|leave|add) .*)", re.DOTALL)
SHOWN_AS = {  # what fills a place, in words for readers
    "BAD": "REASON", "BROKEN": "REASON", "MSG": "REASON", "STRERROR": "REASON", "SAID": "WHAT", "SHOWN": "VALUE",
    "TOLD": "WHAT", "PARENT": "FOLDER", "STEM": "NAME", "LISTING S": "SECONDS", "FORMAT": "VERSION",
}  # fmt: skip
LIMITS = ("MOST ", "MAX ", "LARGEST ", "LONGEST ")  # how constants begin that nothing may exceed
LONGEST_NUMBER = 1_000_000  # of a limit that is shown itself
OF_A_KEY = frozenset({"MistakeError", "UnusableValueError"})  # sentences whose subject is the key that has the value


@dataclass(frozen=True, order=True)
class Sentence:
    """What is printed, and what to do; `remedy` is empty where the sentence has none."""

    text: str
    remedy: str


@dataclass(frozen=True, order=True)
class Place:
    """A sentence for a code, and the module that has it, with dots."""

    code: str
    module: str
    sentence: Sentence


def sentences_of(package: str, codes: frozenset[str]) -> list[Place]:
    """Of all modules of a package, and of protos for the codes that the package shares with it."""
    files = sorted([*(ROOT / package).rglob("*.py"), *(ROOT / "protos").glob("*.py")])
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in files if file.name != "error_codes.py"}
    _CONSTANTS.clear()
    _CONSTANTS.update(_constants(trees))
    mendless = frozenset(_without_mend(trees.values()))
    return sorted({place for file, tree in trees.items() for place in _of_file(file, tree, codes, mendless)})


_CONSTANTS: dict[str, int | str] = {}  # of the package that is read


def _constants(trees: Mapping[Path, ast.AST]) -> dict[str, int | str]:
    """Whole numbers and texts that stand at the top of modules, by MODULE.NAME; by NAME as well where it has a single
    value."""
    found: dict[str, set[int | str | None]] = {}
    for file, tree in trees.items():
        for node in getattr(tree, "body", ()):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, value = node.targets[0].id, _constant(node.value)
                found.setdefault(name, set()).add(value)
                found[f"{_module(file)}.{name}"] = {value}
    only = {name: next(iter(values)) for name, values in found.items() if len(values) == 1}
    return {name: value for name, value in only.items() if value is not None}


def _imported(tree: ast.AST, name: str) -> str:
    """MODULE.NAME of a constant that a module imports; empty where it is none."""
    for node in getattr(tree, "body", ()):
        if isinstance(node, ast.ImportFrom) and any((each.asname or each.name) == name for each in node.names):
            found = f"{node.module}.{name}"
            return found if found in _CONSTANTS else ""
    return ""


def _module(file: Path) -> str:
    """With dots."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def _constant(node: ast.expr) -> int | str | None:
    """Of a number, of one that is shifted, or of a text; else None."""
    match node:
        case ast.Constant(value=int(value)) | ast.Constant(value=str(value)):
            return value
        case ast.BinOp(left=ast.Constant(value=int(value)), op=ast.LShift(), right=ast.Constant(value=int(by))):
            return value << by
    return None


def module_of(package: str, code: str) -> str:
    """The first module of the package that has the code, with dots."""
    for file in sorted((ROOT / package).rglob("*.py")):
        if file.name != "error_codes.py" and f'"{code}"' in file.read_text(encoding="utf-8"):
            return _module(file)
    return package


def _without_mend(trees: Iterable[ast.AST]) -> Iterator[str]:
    """What is called with a code and has no parameter for a mend: functions, and classes by their `__init__`."""
    takes: dict[str, bool] = {}
    for tree in trees:
        for node in ast.walk(tree):
            body = node.body if isinstance(node, ast.ClassDef) else []
            begins = [each for each in body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
            if isinstance(node, ast.FunctionDef):
                takes[node.name] = takes.get(node.name, False) or _has_mend(node)
            elif isinstance(node, ast.ClassDef) and begins:
                takes[node.name] = _has_mend(begins[0])
    yield from (name for name, has in takes.items() if not has)


def _has_mend(function: ast.FunctionDef) -> bool:
    return function.args.vararg is not None or any(each.arg == "mend" for each in function.args.args)


def _of_file(file: Path, tree: ast.AST, codes: frozenset[str], mendless: frozenset[str]) -> Iterator[Place]:
    module = _module(file)
    for scope, node in _scoped(tree):
        for arguments, named, callee in _groups(node):
            for number, argument in enumerate(arguments):
                found = _codes(argument, codes)
                if found:
                    texts = _Texts((scope, tree), arguments[number + 1 :], named, callee, callee not in mendless)
                    yield from (Place(code, module, sentence) for code in found for sentence in texts.sentences())
                    break


def _scoped(tree: ast.AST, scope: ast.AST | None = None) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Every node, with the function that it is in."""
    scope = scope or tree
    for node in ast.iter_child_nodes(tree):
        yield scope, node
        yield from _scoped(node, node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else scope)


def _groups(node: ast.AST) -> Iterator[tuple[list[ast.expr], dict[str, ast.expr], str]]:
    """Arguments in a row, those with names, and what is called."""
    if isinstance(node, ast.Call):
        callee = ast.unparse(node.func).rpartition(".")[2]
        if callee not in READS:
            named = {each.arg: each.value for each in node.keywords if each.arg}
            yield [*node.args, *([named.pop("code")] if "code" in named else [])], named, callee
    elif isinstance(node, ast.Tuple):
        yield node.elts, {}, ""
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                yield [key, *(value.elts if isinstance(value, ast.Tuple) else [value])], {}, ""


def _codes(node: ast.expr, codes: frozenset[str]) -> list[str]:
    if isinstance(node, ast.Constant):
        return [node.value] if node.value in codes else []
    return [*_codes(node.body, codes), *_codes(node.orelse, codes)] if isinstance(node, ast.IfExp) else []


class _Texts:
    """What stands behind a code. scopes: where names are looked up; mended: whether a second text is a mend."""

    def __init__(
        self,
        scopes: tuple[ast.AST, ...],
        behind: list[ast.expr],
        named: dict[str, ast.expr],
        callee: str,
        mended: bool,
    ) -> None:
        self._scopes, self._callee, self._mended = scopes, callee, mended
        self._named = named
        self._behind = [each for each in behind if not isinstance(each, ast.List | ast.Tuple | ast.Starred)]

    def sentences(self) -> Iterator[Sentence]:
        written = [texts for each in self._behind if (texts := list(self._written(each)))]
        if not written:
            return
        mends = written[1] if len(written) > 1 and self._mended else []
        if "mend" in self._named:
            mends = list(self._written(self._named["mend"]))
        for text in filter(_is_sentence, written[0]):
            for mend in list(filter(_is_sentence, mends)) or [""]:
                shown, order = (text, mend) if mend else _parted(text)
                yield Sentence(f"KEY {shown}" if self._callee in OF_A_KEY else shown, order)

    def _written(self, node: ast.expr, deep: bool = True) -> Iterator[str]:
        """The texts that an expression may have, as far as they stand in the function or at the top of the file."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield self._filled(node)
        elif isinstance(node, ast.IfExp):
            yield from self._written(node.body, deep)
            yield from self._written(node.orelse, deep)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield from (a + b for a in self._written(node.left, deep) for b in self._written(node.right, deep))
        elif isinstance(node, ast.BoolOp):
            yield from (text for each in node.values for text in self._written(each, deep))
        elif isinstance(node, ast.Name) and deep:
            if (found := self._value(node)) is not None:
                yield from self._written(found, False)
            elif (imported := _imported(self._scopes[-1], node.id)) and isinstance(text := _CONSTANTS[imported], str):
                yield text
        elif isinstance(node, ast.Call):
            yield from filter(None, [OF_CALLS.get(ast.unparse(node.func).rpartition(".")[2])])

    def _value(self, name: ast.Name) -> ast.expr | None:
        """What the name is assigned; a parameter is what callers give, also where the file has its name elsewhere."""
        for scope in self._scopes:
            found = _assigned(scope, name)
            if found is not None or _is_parameter(scope, name):
                return found
        return None

    def _filled(self, text: ast.JoinedStr) -> str:
        """Names of texts that stand beside it are these texts; of others, what they are called."""
        return _text_of([self._piece(each) for each in text.values], text.values)

    def _piece(self, node: ast.expr) -> str:
        inner = node.value if isinstance(node, ast.FormattedValue) else node
        found = self._value(inner) if isinstance(inner, ast.Name) else None
        return found.value if isinstance(found, ast.Constant) and isinstance(found.value, str) else _piece(node)


def _is_sentence(text: str) -> bool:
    return " " in text


def _assigned(scope: ast.AST, name: ast.Name) -> ast.expr | None:
    """What the name was assigned last in the lines above, by itself or beside others."""
    last: tuple[int, ast.expr] | None = None
    for each in ast.walk(scope):
        if isinstance(each, ast.Assign) and each.lineno <= name.lineno and (last is None or each.lineno > last[0]):
            value = _of_target(each, name.id)
            last = (each.lineno, value) if value is not None else last
    return last[1] if last is not None else None


def _is_parameter(scope: ast.AST, name: ast.Name) -> bool:
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    given = scope.args
    return any(each.arg == name.id for each in (*given.posonlyargs, *given.args, *given.kwonlyargs))


def _of_target(assign: ast.Assign, name: str) -> ast.expr | None:
    for target in assign.targets:
        if ast.unparse(target) == name:
            return assign.value
        if isinstance(target, ast.Tuple) and isinstance(assign.value, ast.Tuple):
            pairs = zip(map(ast.unparse, target.elts), assign.value.elts, strict=False)
            return next((value for each, value in pairs if each == name), None)
    return None


def _parted(text: str) -> tuple[str, str]:
    """A sentence, and what to do where it ends with that."""
    before, _, behind = text.partition("; ")
    if behind and before.count("(") == before.count(")"):
        return before, behind
    found = ORDER.fullmatch(text)
    return text, found[1] if found else ""


def _template(node: ast.JoinedStr) -> str:
    return _text_of([_piece(each) for each in node.values], node.values)


def _text_of(pieces: list[str], nodes: list[ast.expr]) -> str:
    """A text of its pieces. What stands right behind a word has words only sometimes, so it is left open."""
    text = ""
    for piece, node in zip(pieces, nodes, strict=True):
        is_open = isinstance(node, ast.FormattedValue) and piece.isupper() and re.search(r"[a-z].*[a-zA-Z]{2}'?$", text)
        text += " ..." if is_open else piece
    return text


def _piece(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if not isinstance(node, ast.FormattedValue):
        return "..."
    name = _name(node.value)
    return f"'{name}'" if node.conversion == ord("r") else name


def _name(node: ast.expr) -> str:
    """What fills a place, in capitals."""
    shown, inner = "...", _inner(node)
    match node:
        case ast.Attribute(attr="said"):  # of an operator
            shown = "NAME"
        case ast.Name(id=name) | ast.Attribute(attr=name):
            shown = _worded(name)
        case ast.Call(func=ast.Name(id="map"), args=[_, of]):
            shown = _name(of)
        case ast.Call(func=ast.Name(id=name)) if name in COUNTS:
            shown = "N"
        case ast.JoinedStr():
            shown = _template(node)
        case ast.Constant(value=str(text)):
            shown = text
        case _ if inner is not None:
            shown = _name(inner)
    return shown


def _worded(name: str) -> str:
    """A name in the code as what it stands for."""
    words = re.sub(r"_+", " ", name).strip().upper().removesuffix(" NS")
    if name.isupper() and f"{words} ".startswith(LIMITS):
        number = _CONSTANTS.get(name)
        return str(number) if isinstance(number, int) and number <= LONGEST_NUMBER else "LIMIT"
    return SHOWN_AS.get(words, words)


def _inner(node: ast.expr) -> ast.expr | None:
    """The part of an expression that names what it is."""
    match node:
        case ast.Call(func=ast.Attribute(attr="join"), args=[inner]) | ast.Call(args=[inner, *_]):
            return inner
        case ast.Call(func=ast.Attribute(value=inner)) | ast.Subscript(value=inner) | ast.BinOp(left=inner):
            return inner
        case ast.GeneratorExp(elt=inner) | ast.ListComp(elt=inner) | ast.IfExp(body=inner):
            return inner
        case ast.BoolOp(values=[inner, *_]):
            return inner
    return None


__all__ = ["Place", "Sentence", "module_of", "sentences_of"]
