"""The claims of a study file, and each mistake in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from perftrail.model.study import Claim
from tests.studyfile.studies import complaints, read

STUDY = """\
[source]
kind = "directory"
location = "."

[variants.old]
[variants.new]

[benchmark.it]
command = "true {size}"
parameters = { size = [1, 2] }
metrics = { cost = { pattern = 'cost (.*)' } }

[derived.more]
value = "cost[size=2] / cost[size=1]"

[claims.faster]
says = "new is faster"
"""


def test_a_claim_is_read(tmp_path: Path) -> None:
    keys = 'metric = "cost"\nvariant = "new"\nagainst = "old"\nratio = "..0.9"\nat = { size = [2] }\n'
    assert read(tmp_path, STUDY + keys).claims == {
        "faster": Claim(
            says="new is faster",
            metric="cost",
            variant="new",
            against="old",
            ratio="..0.9",
            at={"size": (2,)},
        )
    }


ABOUT = 'metric = "cost"\nvariant = "new"\n'


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("", "16: claims.faster: needs one of ratio, exponent, reaches or cannot, and only one"),
        (
            'cannot = "lost"\nratio = "1.."',
            "16: claims.faster: needs one of ratio, exponent, reaches or cannot, and only one",
        ),
        (f'{ABOUT}ratio = "1.."', "16: claims.faster: is judged by ratio and needs against, too"),
        (
            'reaches = "1.."',
            "16: claims.faster: is judged by reaches and needs metric, variant and along, too",
        ),
        (
            f'{ABOUT}against = "old"\nratio = "1"',
            '21: claims.faster.ratio: "1" is not a valid band; write "LOW..HIGH", "LOW.." or "..HIGH"',
        ),
        (
            f'{ABOUT}against = "old"\nratio = "2..1"',
            '21: claims.faster.ratio: "2..1" has its ends in the wrong order; write the smaller one first',
        ),
        (
            f'{ABOUT}against = "odl"\nratio = "1.."',
            '20: claims.faster.against: no variant "odl"; did you mean "old"?',
        ),
        (
            'metric = "cots"\nvariant = "new"\nagainst = "old"\nratio = "1.."',
            '18: claims.faster.metric: no metric "cots"; did you mean "cost"?',
        ),
        (
            'metric = "more"\nvariant = "new"\nalong = "size"\nreaches = "1.."',
            '18: claims.faster.metric: "more" is derived; reaches needs a measured metric',
        ),
        (
            f'{ABOUT}along = "length"\nexponent = "1.."',
            '20: claims.faster.along: no parameter "length"; choose size',
        ),
        (
            f'{ABOUT}against = "old"\nratio = "1.."\nat = {{ size = [3] }}',
            "22: claims.faster.at.size: size=3 is not among the benchmark's values; choose 1 or 2",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, keys: str, expected: str) -> None:
    [complaint] = complaints(tmp_path, f"{STUDY}{keys}\n")
    assert complaint == f"perftrail.toml:{expected}"
