"""Values drawn from a seed: paths, environments and hash seeds are spread widely and repeat exactly."""

from __future__ import annotations

import subprocess

import pytest

from perftrail.model.measurement import (
    LONGEST_NAME,
    PADDING,
    PADDING_BYTES,
    PATH_LENGTHS,
    drawn_environment,
    seed_of,
)

MANY = range(1, 2001)


def lengths() -> list[int]:
    return [len("/".join(drawn_environment(seed).path)) for seed in MANY]


def test_paths_have_every_length_of_the_range() -> None:
    assert set(lengths()) == set(PATH_LENGTHS)


def test_path_lengths_fall_on_every_alignment_equally_often() -> None:
    counts = [sum(length % 8 == rest for length in lengths()) for rest in range(8)]
    assert all(200 < count < 300 for count in counts), counts  # 250 expected, standard deviation 15


def test_names_are_plain_and_no_longer_than_every_file_system_takes() -> None:
    names = [name for seed in MANY for name in drawn_environment(seed).path]
    assert max(map(len, names)) <= LONGEST_NAME
    assert all(name.isalnum() for name in names)


def test_equal_seeds_decide_the_same_and_different_ones_do_not() -> None:
    assert drawn_environment(5) == drawn_environment(5)
    assert len({drawn_environment(seed).path for seed in MANY}) == len(MANY)


def test_environments_have_any_size_within_a_page() -> None:
    sizes = [len(drawn_environment(seed).environment[PADDING]) for seed in MANY]
    assert 0 <= min(sizes) < 20
    assert PADDING_BYTES - 20 < max(sizes) < PADDING_BYTES
    assert abs(sum(sizes) / len(sizes) - PADDING_BYTES / 2) < 120  # four standard errors


def test_without_padding_the_environment_keeps_its_size() -> None:
    assert drawn_environment(5, padding_bytes=0).environment[PADDING] == ""


def test_seeds_are_above_zero_and_exact_in_json() -> None:
    seeds = [seed_of("a", number) for number in MANY]
    assert len(set(seeds)) == len(seeds)
    assert all(0 < seed <= 2**53 for seed in seeds)


@pytest.mark.parametrize(
    "program",
    [
        ("python3", "-c", "print(hash('word'))"),
        ("perl", "-e", "%h = map { $_ => 1 } 1 .. 30; print join(',', keys %h)"),
    ],
    ids=["python", "perl"],
)
def test_interpreters_hash_by_the_seed(program: tuple[str, ...]) -> None:
    def printed(seed: int) -> str:
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", **drawn_environment(seed).environment}
        return subprocess.run(program, env=environment, check=True, capture_output=True, text=True).stdout

    assert printed(1) == printed(1)
    assert len({printed(seed) for seed in range(1, 6)}) == 5
