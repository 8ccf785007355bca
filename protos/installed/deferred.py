"""Modules that others import and hardly ever use: they are loaded when something of them is used."""

import sys
import time
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

_WAITS = "_waits_for_use"


def defer(name: str, **known: object) -> None:
    """From now on an import of that module costs nothing until it is used. Nothing, where it is loaded already. known:
    what is used of it without loading it."""
    if name in sys.modules:
        return
    sys.modules[name] = _Deferred(name, known)
    package, _, last = name.rpartition(".")
    if package in sys.modules:
        setattr(sys.modules[package], last, sys.modules[name])  # as an import does


def is_deferred(module: ModuleType) -> bool:
    """Whether nothing of it has been loaded."""
    return isinstance(module, _Deferred) and sys.modules.get(module.__name__) is module


class _Deferred(ModuleType):
    """Stands where the module will be."""

    def __init__(self, name: str, known: Mapping[str, object]) -> None:
        super().__init__(name)
        self.__dict__.update(known, **{_WAITS: True})
        self.__spec__ = ModuleSpec(name, None)  # an import asks for it

    def __getattr__(self, attribute: str) -> object:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        if vars(self).pop(_WAITS, False):  # of several threads one alone takes its place
            del sys.modules[self.__name__]
        while sys.modules.get(self.__name__) is self:
            time.sleep(0)
        loaded = import_module(self.__name__)
        self.__dict__.update(vars(loaded))
        return getattr(loaded, attribute)
