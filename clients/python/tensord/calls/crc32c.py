"""CRC-32C (Castagnoli), the checksum of chunks: of b"123456789" it is 0xE3069283.

Python's own library lacks it, and byte by byte it would take a second for 10 MB. Where the package google-crc32c is
installed it does the work, at the speed of memory. Elsewhere the bytes are cut into lanes that NumPy computes side by
side, and whose checksums are then put together in pairs: some hundred MB a second.
"""

import functools

import numpy as np

try:
    import google_crc32c as _native
except ImportError:
    _native = None

_POLYNOMIAL = 0x82F63B78  # bits reflected
_LANE_WORDS = 64
_ONES = 0xFFFFFFFF


def crc32c(data):
    """The checksum of bytes, a bytearray or a memoryview of bytes."""
    # The package takes bytes alone, and without its own native part is slower than NumPy.
    if _native is not None and _native.implementation == "c":
        return _native.value(bytes(data))
    return by_lanes(data)


def by_lanes(data):
    """The same, by NumPy."""
    values = np.frombuffer(data, np.uint8)
    if values.size < 4:
        return _by_bytes(values)
    lanes = 1
    while lanes * _LANE_WORDS * 4 < values.size:
        lanes *= 2
    # Zeros in front change nothing, once what the checksum begins with is in the first bytes.
    padded = np.zeros(lanes * _LANE_WORDS * 4, np.uint8)
    start = padded.size - values.size
    padded[start:] = values
    padded[start : start + 4] ^= 0xFF
    words = np.ascontiguousarray(padded.view("<u4").reshape(lanes, _LANE_WORDS).T)
    low, high = _half_tables()
    state = np.zeros(lanes, np.uint32)
    for word in words:
        state ^= word
        halves = state.view("<u2")
        state = low[halves[0::2]] ^ high[halves[1::2]]
    level = 0
    while state.size > 1:
        state = _shifted(state[0::2], _lane_tables(level)) ^ state[1::2]
        level += 1
    return int(state[0]) ^ _ONES


def _by_bytes(values):
    table, state = _word_tables()[3], _ONES
    for value in values:
        state = state >> 8 ^ int(table[(state ^ int(value)) & 0xFF])
    return state ^ _ONES


def _shifted(state, tables):
    """States after the zeros that the tables stand for."""
    return (
        tables[0][state & 0xFF] ^ tables[1][state >> 8 & 0xFF] ^ tables[2][state >> 16 & 0xFF] ^ tables[3][state >> 24]
    )


@functools.lru_cache(maxsize=None)
def _word_tables():
    """The change of each of a state's four bytes by four zero bytes behind it."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = table >> 1 ^ np.where(table & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    tables = [table]
    for _ in range(3):
        tables.append(tables[-1] >> 8 ^ table[tables[-1] & 0xFF])
    return tables[::-1]


@functools.lru_cache(maxsize=None)
def _half_tables():
    """The same for the two halves of a state, of 16 bits each: fewer steps a word."""
    tables, half = _word_tables(), np.arange(1 << 16)
    return [tables[k][half & 0xFF] ^ tables[k + 1][half >> 8] for k in (0, 2)]


@functools.lru_cache(maxsize=None)
def _lane_tables(level):
    """The same by the zeros of 2^level lanes."""
    if level > 0:
        half = _lane_tables(level - 1)
        return [_shifted(table, half) for table in half]
    tables = [np.arange(256, dtype=np.uint32) << shift for shift in (0, 8, 16, 24)]
    for _ in range(_LANE_WORDS):
        tables = [_shifted(table, _word_tables()) for table in tables]
    return tables
