"""Error of a simulation's input. The commands turn it into exit code 2 and its sentence."""


class BadInputError(Exception):
    """The user's input cannot be used: says where (`file:line` where there is one), what, and the mend."""
