"""plan.json, read, verified and written. `protos.plan_document` says what is in it, `assemble` makes it."""

from __future__ import annotations

from pathlib import Path

from coordinator.errors import BadInputError, Problem, unwritable
from coordinator.spec.files.yaml_source import nearest
from protos import plan_document
from protos.plan_document import NotJsonError, Plan, PlanFileError

LARGEST_PLAN = 64 << 20


def write(plan: Plan, path: Path) -> None:
    """Writes the plan, readable, through a temporary file beside it, so that a reader never sees half of it."""
    if path.is_dir():
        raise BadInputError([Problem(str(path), 0, "is a directory; give the path of a file, like plan.json")])
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(plan.text(), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error


def read(path: Path) -> Plan:
    """Reads and verifies a plan. Raises BadInputError where it is not one, is of another version, or its hash is
    wrong."""

    def refuse(text: str) -> BadInputError:
        return BadInputError([Problem(str(path), 0, f"{text}; make it again with 'coordinator plan'")])

    try:
        if path.stat().st_size > LARGEST_PLAN:
            raise refuse(f"has more than {LARGEST_PLAN} bytes")
        return plan_document.parse(path.read_bytes())
    except OSError as error:
        text = f"cannot be read ({error.strerror or error}); 'coordinator plan query.yaml cluster.yaml' makes a plan"
        raise BadInputError([Problem(str(path), 0, text)]) from error
    except NotJsonError as error:
        if path.suffix in (".yaml", ".yml"):
            text = "is YAML, not a plan; give the plan.json that 'coordinator plan' makes of a query and a cluster"
            raise BadInputError([Problem(str(path), 0, text)]) from error
        raise refuse(error.text) from error
    except PlanFileError as error:
        raise refuse(error.text) from error


def after(plan: Plan, host: str, path: Path) -> tuple[Plan, Path]:
    """The fail-over plan for a host, and where it was written, beside the plan that it is part of. Raises BadInputError
    where there is none."""

    def refuse(text: str) -> BadInputError:
        return BadInputError([Problem(str(path), 0, text)])

    if plan.failover is None:
        raise refuse("has no fail-over plans; make it again with 'coordinator plan --survive 1'")
    if host not in plan.failover:
        raise refuse(f"has no fail-over plan without '{host}'{nearest(host, plan.failover)}")
    found = plan.failover[host].plan
    if found is None:
        raise refuse(f"without '{host}' no output is left, so there is nothing to deploy")
    if not found.intact:
        raise refuse(f"its fail-over plan without '{host}' was changed after it was made; make it again")
    beside = path.with_name(f"{path.stem}-without-{host}{path.suffix}")
    write(found, beside)
    return found, beside
