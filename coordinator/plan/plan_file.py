"""plan.json, read, verified and written. `protos.plan_document` says what is in it, `assemble` makes it."""

from __future__ import annotations

from pathlib import Path

from coordinator import durable_files
from coordinator.error_codes import Code
from coordinator.errors import BadInputError, bad_file, unwritable
from coordinator.spec.files.yaml_source import nearest
from protos import plan_document
from protos.plan_document import Plan, PlanFileError

LARGEST_PLAN = 64 << 20


def write(plan: Plan, path: Path) -> None:
    """Writes the plan, readable and durable; a reader never sees half of it."""
    if path.is_dir():
        raise bad_file(path, "directory", "is a directory", "give the path of a file, like plan.json")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        durable_files.replace(path, plan.text().encode())
    except OSError as error:
        raise unwritable(path, error) from error


def read(path: Path) -> Plan:
    """Reads and verifies a plan. Raises BadInputError where it is not one, is of another version, or its hash is
    wrong."""

    def refuse(code: Code, text: str, subject: str = "") -> BadInputError:
        return bad_file(path, code, text, "make it again with 'coordinator plan'", subject)

    try:
        if path.stat().st_size > LARGEST_PLAN:
            raise refuse("too_large", f"has more than {LARGEST_PLAN} bytes")
        return plan_document.parse(path.read_bytes())
    except OSError as error:
        has_plan = (path / "plan.json").is_file()  # as runs do
        mend = f"give {path}/plan.json" if has_plan else "'coordinator plan query.yaml cluster.yaml' makes a plan"
        raise bad_file(path, "unreadable", f"cannot be read ({error.strerror or error})", mend) from error
    except PlanFileError as error:
        if error.code == "not_json" and path.suffix in (".yaml", ".yml"):
            mend = "give the plan.json that 'coordinator plan' makes of a query and a cluster"
            raise bad_file(path, "file_of_another_kind", "is YAML, not a plan", mend) from error
        raise refuse(error.code, error.text, error.path) from error


def after(plan: Plan, host: str, path: Path) -> tuple[Plan, Path]:
    """The fail-over plan for a host, and where it was written, beside the plan that it is part of. Raises BadInputError
    where there is none."""
    if plan.failover is None:
        raise bad_file(
            path, "no_failover", "has no fail-over plans", "make it again with 'coordinator plan --survive 1'"
        )
    if host not in plan.failover:
        text = f"has no fail-over plan without '{host}'"
        raise bad_file(path, "unknown_node", text, nearest(host, plan.failover))
    found = plan.failover[host].plan
    if found is None:
        text = f"without '{host}' no output is left, so there is nothing to deploy"
        raise bad_file(path, "nothing_to_deploy", text)
    if not found.intact:
        text = f"its fail-over plan without '{host}' was changed after it was made"
        raise bad_file(path, "changed", text, "make it again")
    beside = path.with_name(f"{path.stem}-without-{host}{path.suffix}")
    write(found, beside)
    return found, beside
