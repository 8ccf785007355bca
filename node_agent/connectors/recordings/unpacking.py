"""Data packed with lz4 or zstd, unpacked up to a limit instead of by what it says of its size.

Their packages come with `mcap` and are imported when there is something to unpack.
"""

_MOST_WINDOW_BYTES = 64 << 20  # of zstd, beside the data


def unpacked(packing: str, data: bytes, most: int) -> bytes:
    """Its first bytes: `most`, and one more where there are more. Raises ValueError for data that are damaged, need
    more memory than that, or are packed otherwise."""
    if not packing:
        return data
    if packing == "lz4":
        return _of_lz4(data, most + 1)
    if packing == "zstd":
        return _of_zstd(data, most + 1)
    raise ValueError(f"packed with {packing}; lz4 and zstd are read")


def _of_lz4(data: bytes, most: int) -> bytes:
    import lz4.frame  # type: ignore[import-untyped]

    try:
        plain: bytes = lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=most)
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    return plain


def _of_zstd(data: bytes, most: int) -> bytes:
    import zstandard

    try:
        return zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW_BYTES).stream_reader(data).read(most)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
