"""Errors of this room. The commands turn one into exit code 2 and its sentence."""


class BadInputError(Exception):
    """The user's input cannot be used: says where (`file:line` where there is one), what, and the mend."""


class FeedError(Exception):
    """A live source could not be fed: no agent answers, it went away, or it does not take what is sent."""


class MissingToolError(Exception):
    """An optional program or package is not installed: says which, and how to get it."""
