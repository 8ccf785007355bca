"""Deploying on several nodes as a state machine: answers in, calls out; no I/O, no clock.

Prepare on all; when every node has accepted, commit on all; when any refuses or does not answer, abort on all that may
have prepared. The decision is the first commit that is sent: from then on nothing is aborted, and a node that does not
answer has prepared durably, so it commits with the first tuple of the plan, or when the deployment is repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from coordinator.errors import Mistake


class Verb(Enum):
    """What a node is asked."""

    PREPARE = "prepare"
    COMMIT = "commit"
    ABORT = "abort"


class Result(Enum):
    """How it ended."""

    COMMITTED = "committed"  # on all nodes
    DECIDED = "decided"  # committed, but not every node has said so
    ABORTED = "aborted"  # nowhere committed


@dataclass(frozen=True)
class Answer:
    """A node's answer. answered False: none came, the call may have arrived or not; why: then what went wrong."""

    accepted: bool
    why: Mistake | None = None
    answered: bool = True


Call = tuple[Verb, str]  # what, node
NO_REASON = Mistake("refused_by_agent", "refused without a reason")


@dataclass
class TwoPhase:
    """One deployment. `begin` and `answer` return the calls to make next; over when `result` is set."""

    nodes: tuple[str, ...]
    commit_tries: int = 3
    result: Result | None = None
    reasons: dict[str, Mistake] = field(default_factory=dict)  # node: why it refused or what went wrong
    _phase: Verb = Verb.PREPARE
    _open: set[str] = field(default_factory=set)
    _refused: set[str] = field(default_factory=set)
    _tries: dict[str, int] = field(default_factory=dict)

    def begin(self) -> list[Call]:
        """Ask all nodes to prepare."""
        return self._ask(Verb.PREPARE, self.nodes)

    def answer(self, verb: Verb, node: str, answer: Answer) -> list[Call]:
        """A node has answered, or will not. An answer that was not asked for changes nothing."""
        if verb is not self._phase or node not in self._open:
            return []
        self._open.discard(node)
        return {Verb.PREPARE: self._prepared, Verb.COMMIT: self._committed, Verb.ABORT: self._aborted}[verb](
            node, answer
        )

    def _ask(self, verb: Verb, nodes: Iterable[str]) -> list[Call]:
        self._phase = verb
        calls = [(verb, node) for node in nodes]
        self._open |= {node for _, node in calls}
        return calls

    def _prepared(self, node: str, answer: Answer) -> list[Call]:
        if not answer.accepted:
            self.reasons[node] = answer.why or NO_REASON
            if answer.answered:
                self._refused.add(node)
        if self._open:
            return []
        if not self.reasons:
            return self._ask(Verb.COMMIT, self.nodes)
        # A node that did not answer may have prepared, or may do so later: the abort bars this epoch there.
        calls = self._ask(Verb.ABORT, [each for each in self.nodes if each not in self._refused])
        if not calls:
            self.result = Result.ABORTED
        return calls

    def _committed(self, node: str, answer: Answer) -> list[Call]:
        self._tries[node] = self._tries.get(node, 0) + 1
        if not answer.accepted and not answer.answered and self._tries[node] < self.commit_tries:
            return self._ask(Verb.COMMIT, [node])
        if not answer.accepted:
            self.reasons[node] = answer.why or NO_REASON
        if not self._open:
            self.result = Result.DECIDED if self.reasons else Result.COMMITTED
        return []

    def _aborted(self, node: str, answer: Answer) -> list[Call]:
        if not answer.accepted and not (node in self.reasons and not answer.answered):
            why = answer.why or NO_REASON
            self.reasons.setdefault(node, why.within("could not be told to give up"))
        if not self._open:
            self.result = Result.ABORTED
        return []
