"""The fixture of a benchmark: the lines and services around its invocations, as the whole study describes them.

A fixture is what an invocation needs and what is not measured, or only by choice: servers with their data, and lines
that prepare and clean up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftrail.model.placeholders import DATA, PORT, names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.model.benchmark import Benchmark
    from perftrail.model.service import Service
    from perftrail.model.study import Study


def has_fixture(benchmark: Benchmark) -> bool:
    """Return whether a benchmark has lines or services around its invocations."""
    return bool(benchmark.services or benchmark_lines(benchmark))


def benchmark_lines(benchmark: Benchmark) -> tuple[str, ...]:
    """Return the shell lines around a benchmark's invocations."""
    return (*benchmark.setup, *benchmark.prepare, *benchmark.conclude, *benchmark.cleanup)


def uses_port(service: Service) -> bool:
    """Return whether a service needs a free port."""
    return any(PORT in names(text) for text in service.texts)


def services_of(study: Study, benchmark: Benchmark) -> Mapping[str, Service]:
    """Return the services of a benchmark, in the order of their start."""
    return {name: study.services[name] for name in benchmark.services if name in study.services}


def fixture_texts(study: Study, benchmark: Benchmark) -> tuple[str, ...]:
    """Return every text of a benchmark's lines and services; empty without a fixture."""
    services = services_of(study, benchmark).values()
    return (*benchmark_lines(benchmark), *(text for service in services for text in service.texts))


def setup_parameters(study: Study, benchmark: Benchmark) -> tuple[str, ...]:
    """Return the parameters on which the data and the services depend; each of their values has its own."""
    texts: Sequence[str] = (
        *benchmark.setup,
        *benchmark.cleanup,
        *(text for service in services_of(study, benchmark).values() for text in service.texts),
    )
    named = {name for text in texts for name in names(text)}
    return tuple(name for name in benchmark.parameters if name in named)


def fixture_placeholders(benchmark: Benchmark) -> tuple[str, ...]:
    """Return the placeholders that a benchmark's fixture adds to its texts.

    ``{data}`` and ``{port}`` are those of its only service; ``{data.NAME}`` and ``{port.NAME}`` those of any.
    """
    if not has_fixture(benchmark):
        return ()
    return tuple(_placeholders(benchmark.services))


def _placeholders(services: Sequence[str]) -> Iterator[str]:
    if len(services) < 2:
        yield DATA
    if len(services) == 1:
        yield PORT
    for name in services:
        yield from (f"{DATA}.{name}", f"{PORT}.{name}")


def fixture_content(study: Study, benchmark: Benchmark) -> list[object]:
    """Return what can affect samples beyond the command, for a content key; empty if the benchmark sets nothing."""
    lines = {
        "setup": list(benchmark.setup),
        "prepare": list(benchmark.prepare),
        "conclude": list(benchmark.conclude),
        "cleanup": list(benchmark.cleanup),
        "services": {name: each.content() for name, each in services_of(study, benchmark).items()},
        "measure": "" if benchmark.measure == "command" else benchmark.measure,
        "drop_caches": benchmark.drop_caches,
        "placement": benchmark.placement.content(),
    }
    return [[name, value] for name, value in lines.items() if value]
