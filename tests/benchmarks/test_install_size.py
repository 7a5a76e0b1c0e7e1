"""What each dependency of an installation costs."""

from __future__ import annotations

from benchmarks.install_size import BASE, costs, packages, page, requirements_of


def test_the_base_installation_draws_no_charts_and_needs_no_compiler() -> None:
    base = packages(requirements_of(BASE))
    assert {"numpy", "sqlalchemy"} < base
    assert base.isdisjoint({"vl-convert-python", "ruptures", "pyarrow", "scipy"})


def test_a_dependency_costs_what_only_it_needs() -> None:
    found = {each.name: each for each in costs(("report", "web"), runs=1)}
    assert found["uvicorn"].brings == ("h11",)
    assert found["vl-convert-python"].bytes > 20e6
    text = page(list(found.values()), 1)
    assert f"| `web` | uvicorn {found['uvicorn'].version} | h11 |" in text
