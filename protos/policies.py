"""The scheduling policies by name, the parameters that each of them takes, and how a user writes one: standard
library only, the sole definition. An agent knows exactly these names; a test holds it to that.

    NAME, or NAME:PARAMETER=VALUE,...        edf      bts:phi=100ms,k=5      adaptive:share=2%

In a file the same may be written as a mapping, {name: bts, phi: 100 ms, k: 5}.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

BASIC = ("phi", "hop_phi", "k")  # of policies that run basic batches
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "edf": ("batch",),
    "edf-e2e": (),
    "edf-op": (),
    "fifo": ("batch",),
    "spt": ("batch",),
    "rr": ("batch",),
    "muf": ("batch",),
    "taat": (),
    "bts": BASIC,
    "bts1": BASIC,
    "ats": BASIC,
    "ats1": BASIC,
    "adaptive": ("share",),
    "qed": (),
    "pqed": (),
    "slack": ("batch",),
}
NAMES = tuple(PARAMETERS)
NEVER_LIVE = {  # of the papers' reproductions, which run them in virtual time
    "ideal": "its decisions cost nothing, which a live node cannot give",
    "pqed-printed": "its batches can miss what was promised",
}
MEANING = {
    "phi": "error bound of deadlines, the length of a basic batch, like 100 ms",
    "hop_phi": "error bound of window hops, like 50 ms; the larger of both counts",
    "k": "basic batches that run at once (ats, ats1: to begin with), like 5",
    "share": "of the time that decisions may take, like 2 %",
    "batch": "tuples of one burst that run as one instance, like 5, or 'burst': all",
}
MOST_K = 1_000_000
MOST_BATCH = 1_000_000
PPM = 1_000_000
PER_CENT = 10_000  # millionths
LONGEST_NS = 10**18
LARGEST_PHI_NS = 100_000_000  # [A] table 1
PHI_PART = 10  # of the least sub-deadline
HELP = (
    f"NAME or NAME:PARAMETER=VALUE,..., like bts:phi=100ms,k=5 or adaptive:share=2%. Names: {', '.join(NAMES)}. "
    f"Parameters: {'; '.join(f'{name}, {meaning}' for name, meaning in MEANING.items())}."
)
GRAMMAR = "write NAME or NAME:PARAMETER=VALUE,..., like bts:phi=100ms,k=5"


PolicyFault = Literal[
    "unknown_policy", "policy_never_live", "no_policy_name", "bad_policy_parameter", "policy_parameter_twice",
    "unknown_policy_parameter", "bad_policy_number", "bad_policy_duration", "bad_policy_share",
]  # fmt: skip


class PolicyError(ValueError):
    """A policy that is written wrongly; the text says what is wrong, and the mend."""

    def __init__(self, code: PolicyFault, text: str) -> None:
        self.code = code
        super().__init__(text)


@dataclass(frozen=True)
class Chosen:
    """A policy with the parameters that were given, as `plan.Policy` has them; 0: not given (of `largest_batch`: no
    limit)."""

    name: str
    phi_ns: int = 0
    hop_phi_ns: int = 0
    share_ppm: int = 0
    first_k: int = 0
    largest_batch: int = 1

    @property
    def parameters(self) -> dict[str, int]:
        """Those that were given, by their names in `plan.Policy`."""
        given = {"phi_ns": self.phi_ns, "hop_phi_ns": self.hop_phi_ns, "share_ppm": self.share_ppm}
        found = {name: value for name, value in {**given, "first_k": self.first_k}.items() if value}
        return found if self.largest_batch == 1 else {**found, "largest_batch": self.largest_batch}

    @property
    def written(self) -> str:
        """As a user may write it: it is read as the same again."""
        said = [f"phi={self.phi_ns}ns"] if self.phi_ns else []
        said += [f"hop_phi={self.hop_phi_ns}ns"] if self.hop_phi_ns else []
        said += [f"k={self.first_k}"] if self.first_k else []
        said += [f"share={percent(self.share_ppm)}"] if self.share_ppm else []
        said += [f"batch={self.largest_batch or 'burst'}"] if self.largest_batch != 1 else []
        return f"{self.name}:{','.join(said)}" if said else self.name

    def phi(self, sub_deadlines_ns: Iterable[int]) -> int:
        """The length of a basic batch on a node whose units have these sub-deadlines; 0: the policy has no batches of
        that kind. See `phi_ns`."""
        if "phi" not in PARAMETERS[self.name]:
            return 0
        return phi_ns(self.phi_ns, self.hop_phi_ns, min(sub_deadlines_ns, default=0))


def phi_ns(given_ns: int, hop_ns: int, least_ns: int) -> int:
    """[A] 1.3: the larger of two error bounds, the deadline's (phi_Q) and the window hop's (phi_W, 0: no windows).

    [A] takes one phi_Q for all queries, else the least, and does not say where it comes from. Where none is given it is
    a tenth of the least sub-deadline of the node, 0.1 s at most: [A] table 1 has 0.1 s for deadlines from 1 s on.
    """
    return max(1, given_ns or min(LARGEST_PHI_NS, least_ns // PHI_PART), hop_ns)


def chosen(text: str, duration_ns: Callable[[str], int]) -> Chosen:
    """A policy as one text. `duration_ns` reads a duration and raises ValueError. Raises PolicyError."""
    name, colon, rest = text.strip().partition(":")
    given: dict[str, object] = {}
    for part in rest.split(",") if colon else ():
        key, equals, value = (each.strip() for each in part.partition("="))
        if not (key and equals and value):
            raise PolicyError("bad_policy_parameter", f"'{text}': '{part.strip()}' is not PARAMETER=VALUE; {GRAMMAR}")
        if key in given:
            raise PolicyError("policy_parameter_twice", f"'{text}' gives '{key}' twice; leave one of the two")
        given[key] = value
    return with_parameters(name.strip(), given, duration_ns)


def refused(name: str) -> str:
    """Why no node runs a policy that the papers have; empty: there is none of that name."""
    why = NEVER_LIVE.get(name)
    return f"policy {name} is for the papers' reproductions alone: {why}; choose another, like edf" if why else ""


def with_parameters(name: str, given: Mapping[str, object], duration_ns: Callable[[str], int]) -> Chosen:
    """A policy by name with parameters as they are written. Raises PolicyError."""
    if name in NEVER_LIVE:
        raise PolicyError("policy_never_live", refused(name))
    if name not in PARAMETERS:
        text = f"policy '{name}' is unknown{_nearest(name, NAMES)} there are {', '.join(NAMES)}"
        raise PolicyError("unknown_policy", text)
    takes = PARAMETERS[name]
    numbers: dict[str, int] = {}
    for key, value in given.items():
        if key not in takes:
            has = f"it has {', '.join(takes)}" if takes else "it has none"
            text = f"policy '{name}' has no parameter '{key}'{_nearest(key, takes)} {has}"
            raise PolicyError("unknown_policy_parameter", text)
        numbers[FIELDS[key]] = _value(key, value, duration_ns)
    return Chosen(name, **numbers)


FIELDS = {"phi": "phi_ns", "hop_phi": "hop_phi_ns", "k": "first_k", "share": "share_ppm", "batch": "largest_batch"}


def _value(key: str, value: object, duration_ns: Callable[[str], int]) -> int:
    if key in ("phi", "hop_phi"):
        return _duration(key, value, duration_ns)
    if key == "share":
        return _percent(value)
    if key == "batch" and value == "burst":
        return 0
    most, like = (MOST_K, "like 5") if key == "k" else (MOST_BATCH, "like 5, or 'burst'")
    number = value if isinstance(value, int) and not isinstance(value, bool) else 0
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        number = int(value)
    if not 1 <= number <= most:
        text = f"parameter '{key}' is {value}; it has to be a whole number from 1 to {most}, {like}"
        raise PolicyError("bad_policy_number", text)
    return number


def _duration(key: str, value: object, duration_ns: Callable[[str], int]) -> int:
    if not isinstance(value, str):
        text = f"parameter '{key}' is {value}, without a unit; write it like '{key}: 100 ms'"
        raise PolicyError("bad_policy_duration", text)
    try:
        found = duration_ns(value)
    except ValueError as error:
        raise PolicyError("bad_policy_duration", f"parameter '{key}': {error}") from None
    if not 0 < found <= LONGEST_NS:
        text = f"parameter '{key}' is {value}; it has to be longer than 0, like 100 ms"
        raise PolicyError("bad_policy_duration", text)
    return found


def _percent(value: object) -> int:
    """In millionths."""
    match = re.fullmatch(r"\s*(\d{1,9})(?:\.(\d+))?\s*%\s*", value) if isinstance(value, str) else None
    if match is None:
        text = f"parameter 'share' is {value}; write it as a percentage, like '2 %'"
        raise PolicyError("bad_policy_share", text)
    digits = (match[2] or "").rstrip("0")
    ppm = int(match[1]) * PER_CENT + int(digits.ljust(4, "0")[:4])
    if not 0 < ppm < PPM or len(digits) > 4:
        text = f"parameter 'share' is {value}; it has to be above 0 and below 100 %, in steps of 0.0001 %"
        raise PolicyError("bad_policy_share", text)
    return ppm


def percent(ppm: int) -> str:
    """`2%`, `0.5%`, exactly."""
    return f"{ppm // PER_CENT}.{ppm % PER_CENT:04}".rstrip("0").rstrip(".") + "%"


def _nearest(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # only where something is wrong: an agent starts sooner without it

    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ";"
