"""Rules for `[claims]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.study import read_band
from perftrail.model.target import TargetError, claimed_figure, known_value
from perftrail.model.wording import listed, quoted, suggestion

if TYPE_CHECKING:
    from perftrail.model.study import Claim, Study
    from perftrail.studyfile.complaints import Complaints
    from perftrail.studyfile.positions import KeyPath

_GROWTH = ("metric", "variant", "along")
NEEDED = {"ratio": ("metric", "variant", "against"), "exponent": _GROWTH, "reaches": _GROWTH}
"""What a claim has to name, by how it is judged."""


def check_claims(study: Study, complaints: Complaints) -> None:
    """Complain about claims that cannot be judged as they are written."""
    for name, claim in study.claims.items():
        path: KeyPath = ("claims", name)
        ways = [way for way in (*NEEDED, "cannot") if getattr(claim, way)]
        if len(ways) != 1:
            complaints.add(path, f"needs one of {listed((*NEEDED, 'cannot'))}, and only one")
            continue
        (way,) = ways
        if way != "cannot":
            _check_judged(study, claim, way, path, complaints)


def _check_judged(study: Study, claim: Claim, way: str, path: KeyPath, complaints: Complaints) -> None:
    try:
        read_band(getattr(claim, way))
    except ValueError as error:
        complaints.add((*path, way), f"{quoted(getattr(claim, way))} {error}")
    lacking = [key for key in NEEDED[way] if not getattr(claim, key)]
    if lacking:
        complaints.add(path, f"is judged by {way} and needs {listed(lacking, 'and')}, too")
        return
    for key in ("variant", "against"):
        named = getattr(claim, key)
        if named and named not in study.variants and complaints.clean(("variants",)):
            complaints.add((*path, key), f"no variant {quoted(named)}{suggestion(named, study.variants)}")
    if complaints.clean(("benchmark",), ("derived",)):
        _check_points(study, claim, way, path, complaints)


def _check_points(study: Study, claim: Claim, way: str, path: KeyPath, complaints: Complaints) -> None:
    try:
        figure = claimed_figure(study, claim.metric)
    except TargetError as error:
        complaints.add((*path, "metric"), str(error))
        return
    if way == "reaches" and figure.name in study.derived:
        wrong = (
            f"{quoted(figure.name)} is derived, and how far it goes is told by what was measured; name that"
        )
        complaints.add((*path, "metric"), wrong)
    assert figure.benchmark is not None
    benchmark = study.benchmarks[figure.benchmark]
    if claim.along and claim.along not in benchmark.parameters:
        wrong = f"no parameter {quoted(claim.along)}{suggestion(claim.along, benchmark.parameters)}"
        complaints.add((*path, "along"), wrong)
    for parameter, values in claim.at.items():
        for value in values:
            try:
                known_value(benchmark, parameter, value)
            except TargetError as error:
                complaints.add((*path, "at", parameter), str(error))
