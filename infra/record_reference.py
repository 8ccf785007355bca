"""The reference page of trace records, made from the table in protos/records.py."""

from collections.abc import Iterator
from inspect import cleandoc

from protos.record_layout import CLASSES, Field, Record
from protos.records import KINDS, RESET

PAGE = "docs/reference/trace_records.md"
HEAD = """\
# Trace records

What a node writes down, 64 bytes a record, little-endian: kind u8, flags u8, ref u16, source u16, epoch u16, seq u64,
five words w0 to w4 i64, one last word u64. All instants are nanoseconds of the node's CLOCK_MONOTONIC_RAW; in a virtual
run, of virtual time. The low seven bits of the flags are the plan epoch modulo 128, 0 where no plan is concerned; FLAG,
the highest one, is the kind's own. source, epoch and seq are the tuple's lineage. `at_ns`, in w0, is when it happened.

This page is made from `protos/records.py` by `python -m infra.generate`.
"""


def page() -> str:
    """The page, in Markdown."""
    return "\n".join([HEAD, *(line for kind in CLASSES[1 : RESET + 1] for line in _kind(kind))])


def _kind(kind: type[Record]) -> Iterator[str]:
    yield f"## {kind.number}: {KINDS[kind.number]}\n"
    yield cleandoc(kind.__doc__ or "") + "\n"
    yield "| field | where | what |"
    yield "|---|---|---|"
    for name, each in kind.fields.items():
        names = ", ".join(f"{number} {name}" for number, name in enumerate(each.names) if number)
        yield f"| `{name}` | {_where(each)} | {each.about}{f': {names}' if names else ''} |"
    yield ""


def _where(field: Field) -> str:
    if field.column == "flags":
        return "FLAG"
    return field.column if field.whole else f"{field.column}, bits {field.shift} to {field.shift + field.bits - 1}"


__all__ = ["PAGE", "page"]
