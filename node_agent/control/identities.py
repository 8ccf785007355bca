"""The identities of the operators that run here, and whether their files have changed since they were loaded."""

from pathlib import Path

from node_agent.host import ipc
from node_agent.operators import source_code
from protos import agent_pb2


class Identities:
    """By place, as its runtime told them last. Files are read again only where they look changed."""

    def __init__(self) -> None:
        self._answers: dict[int, tuple[object, ipc.Operators]] = {}  # by place: when, and what
        self._seen: dict[str, tuple[tuple[int, int, int], str]] = {}  # by file: how it looked, and its hash

    def stale(self, place: int, when: object) -> bool:
        """Whether the runtime has to be asked; when: what differs as soon as the answer may."""
        return place not in self._answers or self._answers[place][0] != when

    def put(self, place: int, when: object, answer: ipc.Operators) -> None:
        """What it has answered."""
        self._answers[place] = when, answer

    def of(self, place: int) -> list[agent_pb2.OperatorIdentity]:
        """Nothing where it has not answered yet."""
        if place not in self._answers:
            return []
        answer = self._answers[place][1]
        edited = [self._hash(path) != sha256 for path, sha256 in answer.files]
        return [
            agent_pb2.OperatorIdentity(run=run, version=version, code=code, edited=any(edited[each] for each in files))
            for run, version, code, files in answer.operators
        ]

    def _hash(self, path: str) -> str:
        try:
            found = Path(path).stat()
        except OSError:
            return ""
        looks = found.st_mtime_ns, found.st_size, found.st_ino
        known = self._seen.get(path)
        if known is None or known[0] != looks:
            known = self._seen[path] = looks, source_code.now(Path(path))
        return known[1]


__all__ = ["Identities"]
