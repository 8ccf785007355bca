"""`ports.Callers` in virtual time: a call takes no time. One that has a pace of its own ends when the world says so."""

from collections.abc import Callable

from node_agent.ports import Returned


class ImmediateCallers:
    """All callers of one runtime. now: its clock."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.now = now
        self._paced: dict[str, ImmediateCaller] = {}

    def open(self, name: str, returned: Callable[[Returned], None], paced: bool = False) -> "ImmediateCaller":
        """A caller, of the latest source of that name."""
        caller = ImmediateCaller(self, returned, paced)
        if paced:
            self._paced[name] = caller
        return caller

    def go_on(self, name: str) -> None:
        """The call of a paced source that is under way, if there is one, ends now."""
        if name in self._paced:
            self._paced[name].end()


class ImmediateCaller:
    """`ports.Caller`."""

    def __init__(self, callers: ImmediateCallers, returned: Callable[[Returned], None], paced: bool) -> None:
        self._callers, self._paced = callers, paced
        self._returned: Callable[[Returned], None] | None = returned
        self._held: Callable[[], object] | None = None

    @property
    def busy(self) -> bool:
        """Whether a paced call waits for its end."""
        return self._held is not None

    def call(self, function: Callable[[], object]) -> None:
        """Make it, or hold it until it may end."""
        self._held = function
        if not self._paced:
            self.end()

    def end(self) -> None:
        """Make the call that is held."""
        function, self._held = self._held, None
        if function is None or self._returned is None:
            return
        value, error = None, None
        try:
            value = function()
        except (Exception, SystemExit) as raised:
            error = raised
        self._returned(Returned(self._callers.now(), value, error))

    def close(self) -> None:
        """Nothing is told any more."""
        self._returned = self._held = None


__all__ = ["ImmediateCaller", "ImmediateCallers"]
