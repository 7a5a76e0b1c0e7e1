"""What has been measured in a history or a part of it, read as steps and as a ramp."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.levels import between_equals, side_levels
from perftrail.search.ramp import find_ramps
from perftrail.search.steps import find_steps

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.belief import Posterior
    from perftrail.search.evidence import Evidence
    from perftrail.search.noise import Likelihoods
    from perftrail.search.question import Question
    from perftrail.search.ramp import Ramps
    from perftrail.search.steps import Steps

    Floats = npt.NDArray[np.float64]
    Indices = npt.NDArray[np.int64]

LEAST_BUILDS = 5
"""A ramp is not told from steps by fewer builds."""

MOST_READINGS = 12
"""A build is not read more often than this to tell a ramp from steps, or one step from more."""

_CANDIDATES = 33
_LOOK = 2
_LEAST_GAIN = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The builds of a stretch, and the belief about the steps between them.

    `positions` (K,) ascend; `counts` (K,) are their numbers of readings; `levels` (K, S, G) the logarithms of
    their likelihoods; `mass` (K-1,) the prior of the gaps; `variance` is that of a reading (sigma^2) and of a
    build (tau^2).
    """

    positions: Indices
    counts: Indices
    levels: Floats
    mass: Floats
    variance: tuple[float, float]
    likelihoods: Likelihoods
    steps: Steps

    @property
    def own(self) -> Floats:
        """Each build's likeliest level, (K,)."""
        share = np.exp(self.levels - self.levels.max(axis=2, keepdims=True))
        mixed = np.einsum("s,ksg->kg", self.steps.noise, share)
        likeliest: Floats = self.likelihoods.lattice.nodes[mixed.argmax(axis=1)]
        return likeliest

    @property
    def segments(self) -> Floats:
        """The level of each segment between steps, the mean of its builds, (count+1,)."""
        weight = self.steps.members * self.counts[:, None]
        level: Floats = self.own @ weight / np.maximum(weight.sum(axis=0), 1e-9)
        return level

    def runs(self) -> tuple[range, ...]:
        """Return the steps, those that follow each other in one direction together."""
        up = np.diff(self.segments) > 0
        runs: list[range] = []
        for step in range(self.steps.count):
            if runs and up[step] == up[step - 1]:
                runs[-1] = range(runs[-1].start, step + 1)
            else:
                runs.append(range(step, step + 1))
        return tuple(runs)

    def around(self, question: Question, run: range) -> Picture:
        """Return the part from the segment before some steps to the one after them."""
        first = int(self.steps.surely(run.start)[0])
        last = int(self.steps.surely(run.stop)[-1])
        builds = slice(first, last + 1)
        mass = self.mass[first:last]
        mass = mass / max(float(mass.sum()), 1e-300)
        return replace(
            self,
            positions=self.positions[builds],
            counts=self.counts[builds],
            levels=self.levels[builds],
            mass=mass,
            steps=find_steps(question, self.likelihoods, self.levels[builds], mass),
        )

    def as_ramp(self, question: Question) -> Contrast | None:
        """Compare a ramp with steps; `None` with too few builds for it."""
        if len(self.positions) < LEAST_BUILDS:
            return None
        ramps = find_ramps(question, self.likelihoods, self.levels, self.positions, self.steps.noise)
        if ramps is None:
            return None
        odds = min(max(ramps.log_evidence - self.steps.log_evidence, -50.0), 50.0)
        return Contrast(picture=self, ramps=ramps, probability=1 / (1 + math.exp(-odds)))

    def membership(self, places: Indices) -> Floats:
        """P(each place belongs to each segment), (C, count+1): within a gap, by how far it is through."""
        cumulative = np.concatenate(
            [np.zeros((self.steps.count, 1)), np.cumsum(self.steps.places, axis=1)], axis=1
        )
        stepped = np.array([np.interp(places, self.positions, row) for row in cumulative])
        bounds = np.concatenate(
            [np.ones((1, len(places))), stepped.reshape(-1, len(places)), np.zeros((1, len(places)))]
        )
        share: Floats = np.maximum(bounds[:-1] - bounds[1:], 0.0).T
        return share


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A ramp beside the steps of a picture, and the probability that it is the ramp."""

    picture: Picture
    ramps: Ramps
    probability: float

    def contrast(self, evidence: Evidence) -> int | None:
        """Return the position that best tells a ramp from the steps for what it costs; `None` if none does.

        The gain is what readings there would change the logarithm of the odds, if the level were the mean of
        the ramp: ``sum over segments P(segment) (level - mean)^2 / (2 variance)``.
        """
        picture = self.picture
        spread = np.rint(np.linspace(picture.positions[0], picture.positions[-1], _CANDIDATES)).astype(
            np.int64
        )
        fresh = [place for place in dict.fromkeys(spread.tolist()) if not evidence.is_attempted(place)]
        stands = [
            place
            for place, count in zip(picture.positions.tolist(), picture.counts.tolist(), strict=True)
            if place not in evidence.unusable and count < MOST_READINGS
        ]
        places = np.array(fresh + stands, dtype=np.int64)
        if len(places) == 0:
            return None
        mean, doubt = self.ramps.level(places)
        away = (picture.membership(places) * (picture.segments - mean[:, None]) ** 2).sum(axis=1)
        had = np.array([evidence.count(place) for place in places.tolist()])
        scatter, layout = picture.variance
        told = away / (2 * (layout + doubt + scatter / (had + _LOOK)))
        told -= np.where(had > 0, away / (2 * (layout + doubt + scatter / np.maximum(had, 1))), 0.0)
        seconds = np.where(had > 0, 0.0, evidence.seconds_per_build) + _LOOK * evidence.seconds_per_reading
        if told.max() < _LEAST_GAIN:
            return None
        return int(places[int(np.argmax(np.where(told >= _LEAST_GAIN, told / seconds, -1.0)))])


def picture(
    question: Question, evidence: Evidence, posterior: Posterior, cumulative_prior: Floats
) -> Picture:
    """Take the picture of a whole history, two builds of it at least."""
    positions = np.asarray(posterior.positions)
    levels = side_levels(evidence, posterior.positions, posterior.likelihoods)
    mass = np.diff(cumulative_prior[positions])
    mass[between_equals(evidence, posterior.positions)] = 0.0
    return Picture(
        positions=positions,
        counts=np.array([evidence.count(position) for position in posterior.positions]),
        levels=levels,
        mass=mass,
        variance=(posterior.sigma**2, posterior.tau**2),
        likelihoods=posterior.likelihoods,
        steps=find_steps(question, posterior.likelihoods, levels, mass),
    )
