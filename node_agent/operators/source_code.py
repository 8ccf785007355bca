"""The code of operators: which source files make one, and their hash. Two machines with the same sources agree on it.

An operator's code is the source of the file that defines it, and of what that imports from the same folder (of a file
given with `--operators`) or the same package, also within functions. Other packages are not in it, nor are data files,
nor compiled modules, which are known by their names only; paths, bytecode and the interpreter are not either.
Import statements are found by their form, since parsing a package takes longer than importing it, and an agent loads
operators between the tuples of other plans. So a line of a text that looks like one may add a file, which does no harm.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from protos import digests

SHARED = ("site-packages", "dist-packages")  # folders of packages that have nothing to do with each other
FACE = "node_agent.sdk"  # what every operator imports; behind it is the whole agent
IMPORT = re.compile(
    r"(?:^|[;:])[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|(?:[^#\n\\]|\\\n?)*)|import[ \t]+([^#\n;]+))",
    re.MULTILINE,
)
NAME = re.compile(r"[A-Za-z_][\w.]*")


class _Source(NamedTuple):
    """A file: the hash of its bytes, and what its import statements name, relative ones with their dots."""

    sha256: str
    imports: tuple[tuple[str, tuple[str, ...]], ...]  # module, and what is imported from it


class _Module(NamedTuple):
    name: str  # "": the file that was given, under any name
    file: Path
    package: str  # that its relative imports are relative to


class Sources:
    """Sources as they were when they were first asked for, which is when the operators were loaded. A file that is
    edited later is what it was: so is the code in memory."""

    def __init__(self) -> None:
        self._read: dict[Path, _Source | None] = {}
        self._codes: dict[tuple[str, ...], str] = {}  # by the modules where one begins, which several operators share

    def hold(self, file: Path, source: bytes) -> None:
        """What was read of a file to run it."""
        self._read[file] = _source(source)
        self._codes.clear()

    def code(self, implementation: Callable[..., Any], beside: Iterable[ModuleType] = ()) -> str:
        """The hash of an operator's code, 64 hex digits; beside: modules that belong to it as well."""
        beside = tuple(beside)
        begin = (implementation.__module__, *(module.__name__ for module in beside))
        if begin not in self._codes:
            self._codes[begin] = _hash((module.name, source) for module, source in self._all(implementation, beside))
        return self._codes[begin]

    def files(self, implementation: Callable[..., Any], beside: Iterable[ModuleType] = ()) -> dict[Path, str]:
        """The files that it is made of, each with the hash that it had."""
        return {module.file: source.sha256 for module, source in self._all(implementation, beside) if source}

    def _all(
        self, implementation: Callable[..., Any], beside: Iterable[ModuleType]
    ) -> list[tuple[_Module, _Source | None]]:
        """The modules, by name, and their sources."""
        defining = sys.modules.get(implementation.__module__)
        found: dict[str, tuple[_Module, _Source | None]] = {}
        for module in (defining, *beside):
            if module is not None:
                self._follow(module, found)
        return [found[name] for name in sorted(found)]

    def _follow(self, module: ModuleType, found: dict[str, tuple[_Module, _Source | None]]) -> None:
        folder = _Folder.of(module)
        if folder is None:
            found[module.__name__] = (_Module(module.__name__, Path(), ""), None)
            return
        waiting = [folder.first]
        while waiting:
            each = waiting.pop()
            if each.name in found or each.name == FACE:
                continue
            source = self._source(each.file)
            found[each.name] = (each, source)
            waiting += [other for name in _named(each, source) for other in folder.modules(name)]

    def _source(self, file: Path) -> _Source | None:
        if file not in self._read:
            try:
                self._read[file] = _source(file.read_bytes()) if file.suffix == ".py" else None
            except OSError:
                self._read[file] = None
        return self._read[file]


class _Folder(NamedTuple):
    """Where the modules of one operator are looked for. prefix: of the names of those that belong to it."""

    path: Path
    prefix: str
    first: _Module

    @classmethod
    def of(cls, module: ModuleType) -> "_Folder | None":
        """None where the module has no file."""
        if not getattr(module, "__file__", None):
            return None
        file = Path(str(module.__file__)).resolve()
        name, is_package = module.__name__, file.stem == "__init__"
        if "." in name or is_package:
            top = name.partition(".")[0]
            above = file.parents[name.count(".") + is_package]
            return cls(above, f"{top}.", _Module(name, file, name if is_package else name.rpartition(".")[0]))
        alone = file.parent.name in SHARED
        return cls(file.parent, f"{name}." if alone else "", _Module("", file, ""))

    def modules(self, name: str) -> Iterator[_Module]:
        """The module of that name and the packages that it is in, as far as they are here."""
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            full = ".".join(parts[:count])
            if not f"{full}.".startswith(self.prefix):
                return
            here = self.path.joinpath(*parts[:count])
            if (here / "__init__.py").is_file():
                yield _Module(full, here / "__init__.py", full)
            elif here.with_name(f"{here.name}.py").is_file():
                yield _Module(full, here.with_name(f"{here.name}.py"), full.rpartition(".")[0])
                return
            elif not here.is_dir():
                return


def _named(module: _Module, source: _Source | None) -> Iterator[str]:
    """Absolute names of modules that a module may import."""
    for imported, names in source.imports if source else ():
        dots = len(imported) - len(imported.lstrip("."))
        base = imported
        if dots:
            parts = module.package.split(".")
            if not module.package or dots > len(parts):
                continue
            base = ".".join([*parts[: len(parts) - dots + 1], *([imported[dots:]] if imported[dots:] else [])])
        if base:
            yield base
        yield from (f"{base}.{name}" if base else name for name in names)


def _source(data: bytes) -> _Source:
    text, imports = data.decode(errors="replace"), list[tuple[str, tuple[str, ...]]]()
    for base, names, plain in IMPORT.findall(text):
        if base:
            imports.append((base, tuple(NAME.findall(names))))
        else:
            imports += [(name, ()) for name in NAME.findall(plain)]
    return _Source(digests.sha256(data).hexdigest(), tuple(imports))


def _hash(sources: Iterable[tuple[str, _Source | None]]) -> str:
    whole = digests.sha256()
    for name, source in sources:
        whole.update(f"{name} {source.sha256 if source else ''}\n".encode())
    return whole.hexdigest()


def now(file: Path) -> str:
    """The hash that a file has now; empty: it cannot be read."""
    try:
        return digests.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


__all__ = ["Sources", "now"]
