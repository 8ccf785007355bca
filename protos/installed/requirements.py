"""Which packages the product needs, as its installed metadata say, and which of those installed do not fit.

The lower ends are those of the generated code beside this file, which refuses older packages with a trace back.
"""

import re
from dataclasses import dataclass

from protos.installed import metadata

PRODUCT = "shimekiri"
PACKAGES = ("grpcio", "h2", "hpack", "hyperframe", "protobuf", "psutil")
_CLAUSE = re.compile(r"\s*(==|>=|<=|!=|~=|<|>)\s*(\d+(?:\.\d+)*)(\.\*)?\s*")
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*\(?([^;()]*)\)?\s*")  # one with a marker belongs to an extra


@dataclass(frozen=True, slots=True)
class Unmet:
    """A package that is missing (installed is None) or has another version than the clauses in `demanded` allow."""

    package: str
    installed: str | None
    demanded: str

    def __str__(self) -> str:
        have = "is not installed" if self.installed is None else f"{self.installed} is installed"
        return f"{self.package} {have}, {self.demanded or 'any version'} is needed"


def demanded(product: str = PRODUCT) -> dict[str, str]:
    """Clauses by package, Python's under ''. Empty where the product is not installed."""
    clauses: dict[str, str] = {}
    for name, value in metadata.fields(product):
        if name == "Requires-Python":
            clauses[""] = value
        elif name == "Requires-Dist" and (match := _REQUIREMENT.fullmatch(value)):
            clauses[match[1].lower()] = match[2].strip()
    return clauses


def installed(package: str) -> str | None:
    """The version of a package that is installed here; None: it is not."""
    return metadata.version(package)


def unmet(product: str = PRODUCT) -> list[Unmet]:
    """The packages that do not fit. Empty where the product itself is not installed."""
    clauses = demanded(product)
    have = {package: installed(package) for package in PACKAGES if package in clauses}
    return [
        Unmet(package, version, clauses[package])
        for package, version in have.items()
        if version is None or not _fits(version, clauses[package])
    ]


def mend(found: list[Unmet]) -> str:
    """One line: what does not fit, and the command that mends it."""
    wanted = " ".join(f"'{each.package}{each.demanded}'" for each in found)
    return f"{'; '.join(map(str, found))}; run: python -m pip install {wanted}"


def meets(version: str, clauses: str) -> bool:
    """Whether a version like 6.33.1 meets clauses like `<6.34,>=6.33`; empty: any. ValueError: cannot be read."""
    have = _numbers(version)
    for clause in filter(str.strip, clauses.split(",")):
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            raise ValueError(clause)
        if not _meets(have, match[1], _numbers(match[2]), bool(match[3])):
            return False
    return True


def _fits(version: str, clauses: str) -> bool:
    try:
        return meets(version, clauses)
    except ValueError:  # a direct reference, say: nothing to compare with
        return True


def _meets(have: tuple[int, ...], sign: str, limit: tuple[int, ...], any_after: bool) -> bool:
    if any_after and sign in {"==", "!="}:
        return (have[: len(limit)] == limit) == (sign == "==")
    wide = max(len(have), len(limit))
    left, right = (numbers + (0,) * (wide - len(numbers)) for numbers in (have, limit))
    if sign == "~=":
        return left >= right and have[: len(limit) - 1] == limit[:-1]
    return {
        "==": left == right, "!=": left != right, ">=": left >= right,
        "<=": left <= right, "<": left < right, ">": left > right,
    }[sign]  # fmt: skip


def _numbers(version: str) -> tuple[int, ...]:
    """The release part: 6.33.1rc2 is (6, 33, 1)."""
    match = re.match(r"\d+(\.\d+)*", version)
    if match is None:
        raise ValueError(version)
    return tuple(int(part) for part in match[0].split("."))
