"""The error of a local plan that an agent cannot run."""

from typing import Self

from node_agent.problems import ProblemError


class PlanError(ProblemError, ValueError):
    """A local plan, or a part of one, that this agent cannot run."""

    @classmethod
    def within(cls, error: ProblemError, what: str = "") -> Self:
        """The same mistake, told of the part of the plan that it is in."""
        problem, mistake = error.problem, error.mistake
        if not what:
            return cls(
                error.code, mistake.text, mistake.mend, subject=mistake.subject, file=problem.file, line=problem.line
            )
        return cls(error.code, f"{what}: {error}", subject=mistake.subject or what)
