"""The Huffman code of HPACK, which header fields may be written in (RFC 7541, 5.2 and appendix B)."""

LENGTHS = bytes.fromhex(  # of the code of each byte and, at the end, of EOS; the code is canonical
    "0d171c1c1c1c1c1c1c181e1c1c1e1c1c1c1c1c1c1c1c1e1c1c1c1c1c1c1c1c1c"
    "060a0a0c0d06080b0a0a080b080606060505050606060606060607080f060c0a"
    "0d06070707070707070707070707070707070707070707070807080d130d0e06"
    "0f05060506050606060507070606060506070605050607070707070f0b0e0d1c"
    "1416141416161617161717171717181718181617181717171715161716171718"
    "1615141616171715171616181516171715151615171617171416161617161617"
    "1a1a1413161716191a1a1a1b1b1a181913151a1b1b1a1b1815151a1a1c1b1b1b"
    "14181415161515171616191918181a171a1b1a1a1b1b1b1b1b1c1b1b1b1b1b1a"
    "1e"
)
SYMBOLS = sorted(range(257), key=lambda symbol: (LENGTHS[symbol], symbol))
LONGEST, EOS = 30, 256


def _first_codes() -> list[tuple[int, int, int]]:
    """Of each length: its first code, how many there are, and the place of the first one's symbol."""
    found, code, place = [], 0, 0
    for length in range(LONGEST + 1):
        count = LENGTHS.count(length)
        found.append((code, count, place))
        code, place = (code + count) << 1, place + count
    return found


FIRST = _first_codes()


def decoded(data: bytes) -> bytes:
    """Raises ValueError where this is none of the code's texts."""
    text, code, length = bytearray(), 0, 0
    for byte in data:
        for shift in range(7, -1, -1):
            code, length = code << 1 | byte >> shift & 1, length + 1
            first, count, place = FIRST[length]
            if 0 <= code - first < count:
                symbol = SYMBOLS[place + code - first]
                if symbol == EOS:
                    raise ValueError("the end of the code within a text")
                text.append(symbol)
                code = length = 0
            elif length == LONGEST:
                raise ValueError("no code")
    if length > 7 or code != (1 << length) - 1:
        raise ValueError("no padding")
    return bytes(text)
