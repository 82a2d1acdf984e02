"""Sizes and durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logyard_domain.quantities import (
    DURATION_MS_MAX,
    SIZE_BYTES_MAX,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)

SIZES = [
    ("0", 0), ("1073741824", 2**30), ("1GiB", 2**30), ("8gb", 8 * 10**9), ("512MIB", 512 * 2**20),
    ("0.5GiB", 2**29), ("6 GB", 6 * 10**9), (" 1 KiB ", 1024), ("1.5K", 1500), ("2Gi", 2**31),
    ("3b", 3), ("0.1KiB", 103), ("1EiB", 2**60), ("1tb", 10**12),
]  # fmt: skip
DURATIONS = [
    ("0", 0),
    ("0s", 0),
    ("120s", 120_000),
    ("1m300s", 360_000),
    ("2h0s", 7_200_000),
    ("48h0m0s", 172_800_000),
    ("1.5h", 5_400_000),
    (".5s", 500),
    ("250ms", 250),
    ("1us", 1),
    ("1\u00b5s", 1),
    ("1500000ns", 2),
    ("2d", 172_800_000),
    ("1d12h", 129_600_000),
    (" 5m ", 300_000),
]


@pytest.mark.parametrize(("text", "size_bytes"), SIZES)
def test_sizes(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(("text", "duration_ms"), DURATIONS)
def test_durations(text: str, duration_ms: int) -> None:
    assert parse_duration(text) == duration_ms


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "`` is no size; write for instance 512MiB, 6GB or 1.5GiB"),
        ("-1GB", "`-1GB` is no size; write for instance 512MiB, 6GB or 1.5GiB"),
        ("1e3", "`1e3` is no size; write for instance 512MiB, 6GB or 1.5GiB"),
        ("4 gigs", "`4 gigs` is no size; write for instance 512MiB, 6GB or 1.5GiB"),
        ("9EiB", f"`9EiB` is too large; the most is {SIZE_BYTES_MAX} bytes"),
        ("9" * 50, f"`{'9' * 37}...` is no size; write for instance 512MiB, 6GB or 1.5GiB"),
    ],
)
def test_no_sizes(text: str, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_size(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "`` is no duration; write for instance 2h or 1h30m"),
        ("2 hours", "`2 hours` is no duration; write for instance 2h or 1h30m"),
        ("-1h", "`-1h` is no duration; write for instance 2h or 1h30m"),
        ("1h30", "`1h30` is no duration; write for instance 2h or 1h30m"),
        (".s", "`.s` is no duration; write for instance 2h or 1h30m"),
        ("120", "`120` has no unit; write for instance 120s"),
        ("999999d", "`999999d` is too long; the most is 36600d"),
    ],
)
def test_no_durations(text: str, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_duration(text)
    assert str(refused.value) == message


def test_printed_forms() -> None:
    sizes = [0, 1, 1024, 1000, 2**30, 8 * 10**9, 512_000, 1_610_612_736]
    assert [format_size(size) for size in sizes] == [
        "0", "1", "1KiB", "1KB", "1GiB", "8GB", "500KiB", "1536MiB",
    ]  # fmt: skip
    durations = [0, 1, 1500, 5_400_000, 90_061_001]
    assert [format_duration(duration) for duration in durations] == [
        "0s", "1ms", "1s500ms", "1h30m", "25h1m1s1ms",
    ]  # fmt: skip
    for refuse in (format_size, format_duration):
        with pytest.raises(ValueError, match="not negative"):
            refuse(-1)


@given(st.integers(0, SIZE_BYTES_MAX))
def test_sizes_print_and_read_back(size_bytes: int) -> None:
    assert parse_size(format_size(size_bytes)) == size_bytes


@given(st.integers(0, DURATION_MS_MAX))
def test_durations_print_and_read_back(duration_ms: int) -> None:
    assert parse_duration(format_duration(duration_ms)) == duration_ms
