"""Modules that others import and hardly ever use: they are loaded when something of them is used."""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType


def defer(name: str) -> None:
    """From now on an import of that module costs nothing until it is used. Nothing, where it is loaded already."""
    if name not in sys.modules:
        sys.modules[name] = _Deferred(name)


class _Deferred(ModuleType):
    """Stands where the module will be."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)  # an import asks for it

    def __getattr__(self, attribute: str) -> object:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        loaded = import_module(self.__name__)
        self.__dict__.update(vars(loaded))
        return getattr(loaded, attribute)
