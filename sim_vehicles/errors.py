"""What this room refuses. The commands turn it into exit code 2 and the sentence it carries."""


class BadInputError(Exception):
    """The user's input cannot be used: says where (`file:line` where there is one), what, and the mend."""


class MissingToolError(Exception):
    """An optional program or package is not installed: says which, and how to get it."""
