"""Errors of this room. The commands turn one into an exit code and its sentence.

Bad input is one error here and in virtual time, since a replay reads files of both.
"""

from node_agent.virtual.errors import BadInputError


class FeedError(Exception):
    """A live source could not be fed: no agent answers, it went away, or it does not take what is sent."""


class MissingToolError(Exception):
    """An optional program or package is not installed: says which, and how to get it."""


__all__ = ["BadInputError", "FeedError", "MissingToolError"]
