"""What a process has in memory, by kind."""

from infra.bench.agent import memory

SMAPS = """\
55d0c8a00000-55d0c8a01000 r--p 00000000 08:01 123                        /usr/bin/python3.11
Rss:                  40 kB
Pss:                  20 kB
Private_Dirty:         4 kB
7f0000000000-7f0000100000 rw-p 00000000 00:00 0
Pss:                 100 kB
Private_Clean:         0 kB
Private_Dirty:        70 kB
7f0000200000-7f0000300000 rw-p 00000000 00:00 0                          [heap]
Pss:                  10 kB
Private_Dirty:        10 kB
THPeligible:           0
7f0000400000-7f0000500000 r-xp 00000000 08:01 9                          /v/google/_upb/_message.abi3.so
Pss:                   7 kB
7f0000600000-7f0000700000 r--p 00000000 08:01 9                          /lib/libm.so.6
Pss:                   3 kB
"""
KIB = 1024


def test_each_page_is_of_one_kind() -> None:
    found = memory.pss(SMAPS.splitlines())
    assert found == {
        "the interpreter": 20 * KIB, memory.OWN: 80 * KIB, memory.SINCE_FORK: 30 * KIB, "protobuf": 7 * KIB,
        memory.OTHER: 3 * KIB,
    }  # fmt: skip
    assert found.total() == 140 * KIB


def test_the_table_has_a_column_for_each_process_and_their_sum() -> None:
    found = {"supervisor": memory.Bytes({"a": 1_000_000}), "runtime": memory.Bytes({"a": 500_000, "b": 2_000_000})}
    assert memory.table(found).splitlines() == [
        "| MB of PSS | supervisor | runtime | all |",
        "| --- | ---: | ---: | ---: |",
        "| b | 0.0 | 2.0 | 2.0 |",
        "| a | 1.0 | 0.5 | 1.5 |",
        "| **all** | **1.0** | **2.5** | **3.5** |",
    ]
