"""Output that operators print becomes lines of the agent's log, which never wait for their reader."""

import io
from typing import TextIO

from node_agent.host.log import Log

MOST_CHARACTERS = 1 << 12  # of a line that does not end


class OperatorOutput(io.TextIOBase):
    """In the place of sys.stdout in a runtime: each line is told with time and place, empty ones are not."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._begun = ""

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Tells the lines that are complete; len(text)."""
        *lines, begun = (self._begun + text).split("\n")
        self._begun = ""
        for line in lines:
            self._tell(line)
        if len(begun) >= MOST_CHARACTERS:
            self._tell(begun)
        else:
            self._begun = begun
        return len(text)

    def _tell(self, line: str) -> None:
        if line.strip():
            self._log.say("printed", line.rstrip())


def operator_output(log: Log) -> TextIO:
    """As sys.stdout has to be typed."""
    return OperatorOutput(log)  # type: ignore[return-value]
