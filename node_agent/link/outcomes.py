"""The outcome log of one source's incarnation: it learns the outcome of each tuple exactly, also after a reconnect.

Pure. The admitting side records an outcome per link_seq in order; a source that reconnects says up to which one it
knows them, and the later ones come again.
"""

from collections import deque
from collections.abc import Iterable

Outcome = tuple[int, int, int, str | None]
"""link_seq, epoch, seq, None; or link_seq, 0, 0, why it was refused"""


class OutcomeLog:
    """Outcomes of one source's incarnation. Remembers the latest `keep`; a source has fewer tuples unanswered."""

    def __init__(self, keep: int = 16_384) -> None:
        self._sent: deque[Outcome] = deque(maxlen=keep)
        self._new: list[Outcome] = []
        self._promised = 0  # of the new ones, how many admissions a next incarnation would know
        self._recalled: set[int] = set()  # of an earlier one, what the source may send again
        self._forgotten = 0  # up to this link_seq nobody here knows what became of a tuple

    def __len__(self) -> int:
        """Outcomes that are remembered or not told yet."""
        return len(self._sent) + len(self._new)

    def admitted(self, link_seq: int, epoch: int, seq: int) -> None:
        """The tuple was given this lineage."""
        self._new.append((link_seq, epoch, seq, None))

    def refused(self, link_seq: int, why: str) -> None:
        """The tuple was not admitted."""
        self._new.append((link_seq, 0, 0, why))

    def promise_admissions(self) -> list[Outcome]:
        """The admissions that a next incarnation has to know, from where this ended last time. A refusal may not be on
        record: it is decided anew there."""
        found = [outcome for outcome in self._new[self._promised :] if outcome[3] is None]
        self._promised = len(self._new)
        return found

    @property
    def promised(self) -> bool:
        """Whether a next incarnation would know every outcome that `take` would give."""
        return self._promised >= len(self._new) and not self.refuses

    @property
    def refuses(self) -> bool:
        """Whether `take` would give a refusal."""
        return any(why is not None for _, _, _, why in self._new)

    def recall(self, outcomes: Iterable[Outcome], forgotten: bool = False) -> None:
        """Outcomes that an earlier incarnation of the admitting side had and may not have told. forgotten: it had
        others before these, so no tuple from before the first of them is taken: it may have been admitted."""
        self._sent.extend(outcomes)
        self._recalled.update(outcome[0] for outcome in self._sent)
        if forgotten and self._recalled:
            self._forgotten = min(self._recalled) - 1

    def resume_after(self, known: int) -> int:
        """Up to which link_seq nothing is missing for a source that knows the outcomes up to `known`: it has to send
        what follows again, since a refusal may not have been told."""
        known = max(known, self._forgotten)
        while known + 1 in self._recalled:
            known += 1
        return known

    def knows(self, link_seq: int) -> bool:
        """Whether an earlier incarnation admitted it: its outcome is told without it."""
        return link_seq in self._recalled

    def on_hello(self, resume_after: int) -> None:
        """The source is (again) connected and knows the outcomes up to this link_seq."""
        again = [outcome for outcome in self._sent if outcome[0] > resume_after]
        self._new[:0] = again
        self._promised += len(again)
        for _ in again:
            self._sent.pop()

    def take(self, most: int = 4096) -> list[Outcome]:
        """The outcomes to write now, oldest first. Write them with or before the Ack that covers them."""
        taken = self._new[:most]
        del self._new[:most]
        self._promised = max(0, self._promised - len(taken))
        self._sent.extend(taken)
        return taken
