"""One detector in a separate process: it reads lines of JSON with a series and prints lines with its change points.

It runs with the Python of the detector's environment, so it imports this project only for perftrail's detector. The
first argument names the detector. The time is the CPU time of the call, which other processes hardly affect.
"""

from __future__ import annotations

import json
import math
import random
import sys
import time
from collections.abc import Callable


def perftrail(*, alerts: bool = False) -> Callable[[list[float]], list[int]]:
    """Return perftrail's detector, which gets logarithms, as in perftrail; it reports all points or only the alerts."""
    from perftrail.stats.changepoints import change_points  # noqa: PLC0415

    def detect(values: list[float]) -> list[int]:
        logs = [math.log(value) if value > 0.0 else math.nan for value in values]
        points = change_points([(position, (log,)) for position, log in enumerate(logs)])
        return [point.position for point in points if point.alert or not alerts]

    return detect


def nothing() -> Callable[[list[float]], list[int]]:
    """Return a detector that never reports a point."""
    return lambda _: []


def asv() -> Callable[[list[float]], list[int]]:
    """Return the detector of asv, as its web page calls it."""
    from asv.step_detect import detect_steps  # type: ignore[import-not-found]  # noqa: PLC0415  # elsewhere

    return lambda values: [left for left, *_ in detect_steps(values)[1:]]


def otava() -> Callable[[list[float]], list[int]]:
    """Return the detector of Apache Otava, with its defaults."""
    from otava.analysis import compute_change_points  # type: ignore[import-not-found]  # noqa: PLC0415  # elsewhere

    return lambda values: [point.index for point in compute_change_points(values)[0]]


def e_divisive() -> Callable[[list[float]], list[int]]:
    """Return E-divisive of MongoDB, with its defaults and a fixed seed for its permutations."""
    import numpy  # noqa: PLC0415
    from signal_processing_algorithms.energy_statistics.energy_statistics import (  # type: ignore[import-not-found]  # noqa: PLC0415  # elsewhere
        e_divisive as detect,
    )

    def seeded(values: list[float]) -> list[int]:
        numpy.random.seed(1)  # the generator of the library
        random.seed(1)
        return list(detect(values))

    return seeded


DETECTORS = {
    "perftrail": perftrail,
    "perftrail-alerts": lambda: perftrail(alerts=True),
    "nothing": nothing,
    "asv": asv,
    "otava": otava,
    "e-divisive": e_divisive,
}


def main() -> None:
    """Answer until the input ends."""
    detect = DETECTORS[sys.argv[1]]()
    for line in sys.stdin:
        values = json.loads(line)
        began = time.process_time()
        points = sorted(int(point) for point in detect(values))
        seconds = time.process_time() - began
        print(json.dumps({"points": points, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
