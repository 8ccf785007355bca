"""What some seeds of earlier draws were made of: each has found a defect that is mended."""

from tests.simulation.faults.campaign import LOADS, RING, SMALL_RING, Drawn
from tests.simulation.faults.draws import sent
from tests.simulation.faults.fault import Fault
from tests.simulation.faults.faults import BURST_PART, END_NS
from tests.simulation.faults.faulty_line import MS

NOWHERE = ("a", "b")  # of faults that happen to a node


def _drawn(load: int, ring_records: int, s: tuple[int, int], t: tuple[int, int], *faults: Fault) -> Drawn:
    """s, t: the first instant and the period of what they send."""
    fed = {name: sent(*how, END_NS, faults, BURST_PART) for name, how in (("s", s), ("t", t))}
    return Drawn(LOADS[load], ring_records, sorted(faults, key=lambda fault: fault.at_ns), fed)


ONCE_FAILED = {
    69: _drawn(
        4, SMALL_RING, (103_508_033, 15 * MS), (106_860_684, 40 * MS),
        Fault("burst", 5_912_748_694, 3_506_461_923, "a", NOWHERE, 300),
    ),
    1057: _drawn(
        3, RING, (131_489_579, 40 * MS), (101_265_751, 15 * MS),
        Fault("suspend", 1_103_948_294, 2_229_893_154, "a", NOWHERE, 428),
        Fault("suspend", 6_401_619_938, 2_293_071_211, "a", NOWHERE, 279),
        Fault("suspend", 1_662_251_845, 2_339_836_401, "c", NOWHERE, 124),
        Fault("suspend", 4_148_384_335, 3_206_822_444, "b", NOWHERE, 69),
    ),
    1059: _drawn(
        0, SMALL_RING, (113_069_452, 40 * MS), (108_722_241, 40 * MS),
        Fault("power_cut", 5_692_524_158, 2_891_590_042, "b", NOWHERE, 521),
    ),
    3012: _drawn(
        2, SMALL_RING, (187_411_098, 100 * MS), (112_352_075, 15 * MS),
        Fault("suspend", 2_460_087_036, 1_663_284_881, "b", NOWHERE, 621),
        Fault("suspend", 2_946_295_464, 2_542_179_800, "b", NOWHERE, 819),
        Fault("lossy", 6_951_666_595, 590_964_404, "c", ("client-s", "a"), 865),
    ),
    11: _drawn(
        4, SMALL_RING, (176_150_410, 100 * MS), (142_003_258, 100 * MS),
        Fault("reset", 1_225_558_046, 70_152_637, "c", ("client-t", "b"), 299),
        Fault("reset", 3_025_724_519, 1_790_773_526, "b", ("client-t", "b"), 53),
        Fault("crash", 2_045_754_125, 1_503_069_939, "a", NOWHERE, 290),
        Fault("crash", 1_915_562_497, 2_854_839_867, "a", NOWHERE, 637),
    ),
    12: _drawn(
        2, RING, (199_446_953, 100 * MS), (104_344_725, 15 * MS),
        Fault("crash_running", 4_524_847_970, 1_685_951_437, "b", NOWHERE, 450),
        Fault("crash_running", 3_524_733_165, 2_349_816_008, "a", NOWHERE, 1),
        Fault("crash_running", 1_002_355_187, 1_336_121_708, "b", NOWHERE, 417),
        Fault("crash_running", 5_459_132_129, 1_187_336_424, "b", NOWHERE, 216),
    ),
    127: _drawn(
        3, SMALL_RING, (105_591_102, 15 * MS), (134_606_129, 100 * MS),
        Fault("crash_unheard", 2_004_906_526, 2_504_429_444, "a", NOWHERE, 542),
        Fault("crash_unheard", 3_662_499_965, 3_500_654_066, "c", NOWHERE, 325),
        Fault("crash_unheard", 6_935_052_885, 332_008_953, "a", NOWHERE, 836),
        Fault("crash_unheard", 1_167_877_920, 221_200_539, "c", NOWHERE, 705),
    ),
    4: _drawn(
        3, RING, (112_000_000, 15 * MS), (107_000_000, 15 * MS),
        Fault("power_cut", 1_778_743_929, 2_443_195_904, "a", NOWHERE, 979),
        Fault("power_cut", 3_534_568_510, 1_198_180_293, "c", NOWHERE, 626),
    ),
    404118: _drawn(
        3, RING, (100_068_310, 15 * MS), (106_826_844, 15 * MS),
        Fault("crowded", 1_744_972_860, 3_937_782_170, "c", ("client-s", "a"), 422),
        Fault("suspend", 2_109_676_263, 683_519_293, "a", ("client-s", "a"), 641),
        Fault("down", 2_263_217_299, 3_754_804_872, "c", ("client-s", "a"), 658),
        Fault("crash", 3_448_350_135, 2_185_279_288, "a", ("client-s", "a"), 401),
        Fault("replay", 3_647_453_120, 3_473_419_334, "b", ("b", "c"), 419),
        Fault("crowded", 4_483_790_395, 3_833_083_136, "b", ("c", "b"), 951),
        Fault("replay", 5_965_523_197, 2_269_115_709, "c", ("client-t", "b"), 758),
        Fault("crash_unheard", 6_772_204_728, 159_027_500, "b", ("client-s", "a"), 390),
        Fault("deaf_control", 6_852_595_730, 2_667_184_958, "a", ("a", "client-s"), 801),
    ),
    404864: _drawn(
        2, RING, (133_428_006, 40 * MS), (113_517_185, 100 * MS),
        Fault("lossy", 2_249_170_004, 3_618_042_237, "c", ("b", "client-t"), 743),
        Fault("crash_running", 2_502_688_382, 2_209_404_429, "b", ("b", "a"), 482),
        Fault("replay", 2_970_733_577, 731_900_945, "c", ("b", "client-t"), 547),
        Fault("crash_running", 3_039_989_018, 2_269_723_332, "b", ("b", "a"), 995),
        Fault("lossy", 3_496_416_470, 2_303_723_537, "c", ("a", "b"), 287),
        Fault("crash_running", 4_006_173_982, 2_893_180_746, "a", ("a", "b"), 919),
        Fault("impostor", 5_561_424_297, 1_671_833_514, "b", ("a", "b"), 397),
        Fault("slow", 5_908_082_939, 1_208_912_793, "b", ("a", "b"), 690),
    ),
}  # fmt: skip
