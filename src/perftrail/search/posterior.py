"""Compute the posterior over any number of changes between built revisions.

The level is constant from one built revision to the next, or changes in the gap between them. With M(a, b)
the marginal likelihood of the builds a..b as one segment (its level and the shape of its noise integrated
out) and mu_k the prior mass of gap k, the evidence of c changes is

``sum over k_1 < ... < k_c of M(0, k_1) mu_k_1 M(k_1+1, k_2) mu_k_2 ... M(k_c+1, K-1)``

computed forwards and backwards: a product-partition model (Barry and Hartigan 1992; Fearnhead 2006). The cost
depends on the number of builds, not of revisions. It guides the search; only certificates confirm changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.noise import HALVED, ODD_BUILDS, SHAPES_PRIOR, Likelihoods, build_grid, build_lattice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from perftrail.search.evidence import Evidence
    from perftrail.search.noise import Grid, Lattice
    from perftrail.search.question import Question
    from perftrail.stats.scale import Scale

    Floats = npt.NDArray[np.float64]
    Indices = npt.NDArray[np.int64]

ANOTHER = 0.15
"""The prior probability of one more change, once there is one."""

EXCLUDED = 1e-8
"""A noise (a combination of sigma and tau) that an earlier posterior found less likely than this is ignored until the
grid changes."""

RARE = 1e-5
"""A noise less likely than this is ignored even if only its tail matters."""

MOST_CHANGES = 6
"""Maximum number of changes that the posterior considers."""

QUANTILES = (0.1587, 0.5, 0.8413)
"""The median, and one standard deviation of a normal density on both sides of it."""

SMALLEST_LIKELIHOOD = 1e-300
"""Floor of a build's likelihood, relative to its largest: products of likelihoods never become zero."""

MATTERS = 1e-3
"""The policy ignores gaps, and noises, that are less likely than this."""


CANDIDATES_PROBABILITY = 0.95
"""The probability that the counted candidates contain the culprit, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a change under each hypothesis, (H,): the mean sample, its variance, and the scatter of samples.

    `mean` is the level if samples scatter around one, and their average if a share of them is elsewhere.
    `scatter` is the variance of a sample around its build's mean.
    """

    mean: Floats
    variance: Floats
    scatter: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyChange:
    """One likely change, among the builds `first` to `last` of the posterior, both included.

    `gaps` (K-1,) is the probability of each gap between neighbouring builds, given that the change exists.
    `exists` is the probability that it exists, `reaches_threshold` that it is also at least as large as the threshold.
    `kept` (H,) are the gaps that matter, the hypotheses of `before` and `after`.
    """

    first: int
    last: int
    gaps: Floats
    exists: float
    reaches_threshold: float
    kept: Indices
    before: Side
    after: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """The belief of a search, for its policy and its answer.

    `positions` (K,) are the built ones; `counts` (C+1,) the probability of 0, 1, ... changes between them.
    `guesses` are as many changes as are likely, at least one if there can be any; `changes` are those with
    more than even odds. `no_change` is the probability that no change of the threshold or more exists between the
    builds. `level` is the first build's; `sigma` and `tau` are the spread of samples and of layouts. `noise` (S,)
    weights the combinations of sigma and tau; only those in `kept` were considered.
    """

    positions: tuple[int, ...]
    counts: Floats
    guesses: tuple[LikelyChange, ...]
    changes: tuple[LikelyChange, ...]
    no_change: float
    level: float
    sigma: float
    tau: float
    likelihoods: Likelihoods
    chain: _Chain
    noise: Floats
    kept: Indices


def infer(
    question: Question,
    evidence: Evidence,
    cumulative_prior: Floats,
    *,
    known: Posterior | None = None,
) -> Posterior:
    """Return the posterior given all samples; needs two usable positions.

    Likelihoods of an earlier posterior, `known`, are reused if they fit, and noises that it excluded are omitted.
    """
    positions = evidence.guiding_positions
    builds = [evidence.build_of(position) for position in positions]
    layouts = {build: evidence.samples(build) for build in builds}
    grid = build_grid(question, evidence)
    lattice = build_lattice(question, grid, [values for each in layouts.values() for values in each])
    likelihoods = (
        known.likelihoods
        if known is not None and known.likelihoods.fits(lattice, grid)
        else Likelihoods(lattice, grid)
    )
    kept = _noises(grid, known)
    prior = np.diff(cumulative_prior[np.asarray(positions)])
    chain = _Chain(
        likelihoods.lattice,
        grid.only(kept),
        _levels(likelihoods, builds, layouts, kept),
        np.asarray(builds),
        [evidence.all_samples(build) for build in builds],
        _mass_between(prior, builds),
        question.no_change,
    )
    joint = chain.weigh(max(0.0, 1.0 - float(prior.sum())))
    counts = joint.sum(axis=1)
    noise = np.zeros(len(grid.sigma))
    noise[kept] = joint.sum(axis=0)
    count = int(np.searchsorted(np.cumsum(counts), 0.5))
    guesses = _guesses(chain, question, joint, count)
    return Posterior(
        positions=positions,
        counts=counts,
        guesses=guesses,
        changes=guesses if count else (),
        no_change=math.prod(1.0 - each.reaches_threshold for each in guesses),
        level=float(np.median(evidence.all_samples(builds[0]))),
        sigma=math.sqrt(float(noise @ grid.sigma**2)),
        tau=_median_tau(noise, grid),
        likelihoods=likelihoods,
        chain=chain,
        noise=noise,
        kept=kept,
    )


def _median_tau(noise: Floats, grid: Grid) -> float:
    """Return the median of tau: its mean square would be that of the prior's tail, not of what the samples show."""
    order = np.argsort(grid.tau, kind="stable")
    return float(grid.tau[order][int(np.searchsorted(np.cumsum(noise[order]), 0.5 * noise.sum()))])


def _noises(grid: Grid, known: Posterior | None) -> Indices:
    """Return the indices of the grid's noises that an earlier posterior did not exclude."""
    if known is None or not grid.is_like(known.likelihoods.grid):
        return np.arange(len(grid.sigma))
    return np.nonzero(known.noise > EXCLUDED * known.noise.max())[0]


def _guesses(chain: _Chain, question: Question, joint: Floats, count: int) -> tuple[LikelyChange, ...]:
    """Return the likeliest `count` changes; if `count` is zero, the likeliest single change."""
    if len(joint) == 1:
        return ()
    found = chain.changes(question, max(count, 1), joint)
    if count > 1:
        return found
    exists = float(joint[1:].sum())
    return tuple(
        replace(each, exists=exists, reaches_threshold=each.reaches_threshold * exists) for each in found
    )


def _levels(
    likelihoods: Likelihoods,
    builds: Sequence[int],
    layouts: Mapping[int, tuple[Floats, ...]],
    kept: Indices,
) -> Floats:
    """Return the log likelihood of each position's build under the noises kept, (K, S, Q, G).

    An end that differs from all other builds cannot be distinguished from a change next to it, and counts as
    one.
    """
    ends = {builds[0], builds[-1]} if builds[0] != builds[-1] else set()
    by_build = {
        build: likelihoods.of_segment(each, odd=0.0 if build in ends else ODD_BUILDS)[kept]
        for build, each in layouts.items()
    }
    return np.stack([by_build[build] for build in builds])


def _mass_between(prior: Floats, builds: Sequence[int]) -> Floats:
    """Return the prior of a change in each gap: zero between equal builds, whose share goes to the other gaps.

    Revisions that do not change the build make the others likelier, not a change less likely.
    """
    mass = np.where(np.diff(builds) != 0, prior, 0.0)
    return mass * (prior.sum() / mass.sum()) if mass.sum() > 0 else mass


class _Chain:
    """The marginal likelihoods of all segments, and the recursions over them.

    `levels` (K, S, Q, G) are the logarithms of the builds' likelihoods; equal `builds` count once in a
    segment.
    """

    def __init__(
        self,
        lattice: Lattice,
        grid: Grid,
        levels: Floats,
        builds: Indices,
        values: list[Floats],
        mass: Floats,
        no_change: float,
    ) -> None:
        self.lattice = lattice
        self.grid = grid
        self.levels = levels
        self._values = values
        self.builds = builds
        self._no_change = no_change
        self._changes: dict[int, tuple[LikelyChange, ...]] = {}
        self._most = min(MOST_CHANGES, int((mass > 0).sum()))
        # The prior density of a segment's shape and level times the lattice's weights, (Q, G).
        self._density: Floats = SHAPES_PRIOR[:, None] * (lattice.weights / lattice.reach)[None, :]
        self._segments = self._segment_evidence()
        with np.errstate(divide="ignore"):
            self._log_mass = np.log(mass)
        self._forward = self._run_forwards()
        self._backward = self._run_backwards()

    def _segment_evidence(self) -> Floats:
        """Return log M(a, b), (K, K, S); only a <= b is used."""
        count, noises = self.levels.shape[:2]
        table = np.full((count, count, noises), -np.inf)
        tops = self.levels.max(axis=(2, 3))
        likelihoods = np.maximum(np.exp(self.levels - tops[:, :, None, None]), SMALLEST_LIKELIHOOD)
        # The likelihood of the segment from each position to the current one, divided by its largest value.
        segments = likelihoods.copy()
        scales = tops.copy()
        found: dict[int, int] = {}
        for last, build in enumerate(self.builds.tolist()):
            # Segments that begin before the previous equal build contain it already.
            since = found.get(build, -1) + 1
            found[build] = last
            longer = segments[since:last]
            longer *= likelihoods[last]
            largest = longer.max(axis=(2, 3))
            longer /= largest[:, :, None, None]
            scales[since:last] += tops[last] + np.log(largest)
            evidence = np.einsum("bsqg,qg->bs", segments[: last + 1], self._density)
            table[: last + 1, last] = np.log(evidence) + scales[: last + 1]
        return table

    def _sums(self, positions: Sequence[int], kept: Indices | slice = slice(None)) -> Floats:
        """Return the log likelihoods of the first position, the first two, ... together, (len(positions), S', Q, G)."""
        totals: Floats = np.repeat(self.levels[positions[0]][kept][None], len(positions), axis=0)
        seen = {self.builds[positions[0]]}
        for row, at in enumerate(positions[1:], start=1):
            totals[row] = totals[row - 1]
            if self.builds[at] not in seen:
                seen.add(self.builds[at])
                totals[row] += self.levels[at][kept]
        return totals

    def _run_forwards(self) -> list[Floats]:
        """Return for each number of changes the log evidence of the builds up to each one, (C+1) of (K, S)."""
        rows = [self._segments[0]]
        for _ in range(self._most):
            before = rows[-1][:-1] + self._log_mass[:, None]
            # Segments that would end before they begin are -inf in the table, and add nothing.
            rows.append(_log_sum(before[:, None] + self._segments[1:]))
        return rows

    def _run_backwards(self) -> list[Floats]:
        """Return for each number of changes the log evidence of the builds from each one on, (C+1) of (K, S)."""
        last = len(self.levels) - 1
        rows = [self._segments[:, last]]
        ending = self._segments[:, :last].swapaxes(0, 1)
        for _ in range(self._most):
            after = rows[-1][1:] + self._log_mass[:, None]
            rows.append(_log_sum(ending + after[:, None]))
        return rows

    def weigh(self, outside: float) -> Floats:
        """Return the probability of each number of changes and each noise, (C+1, S)."""
        prior = [self._no_change + outside * (1 - self._no_change)]
        for count in range(1, self._most + 1):
            # A set of changes has `count!` orders.
            share = (1 - ANOTHER) * ANOTHER ** (count - 1) * math.factorial(count)
            prior.append((1 - self._no_change) * share)
        logs = np.log(prior)[:, None] + np.array([row[-1] for row in self._forward])
        logs = logs + self.grid.log_prior
        weight: Floats = np.exp(logs - logs.max())
        return weight / float(weight.sum())

    def changes(self, question: Question, count: int, joint: Floats) -> tuple[LikelyChange, ...]:
        """Return the changes if there are `count` of them; `joint` (C+1, S) is the result of `weigh`."""
        if count not in self._changes:
            self._changes[count] = self._find_changes(question, count, joint[count])
        return self._changes[count]

    def _find_changes(self, question: Question, count: int, noise: Floats) -> tuple[LikelyChange, ...]:
        total = self._forward[count][-1]
        kept = np.nonzero((noise > MATTERS * noise.max()) & np.isfinite(total))[0]
        if len(kept) == 0:
            return ()
        weight = noise[kept] / noise[kept].sum()
        rows = []
        for number in range(1, count + 1):
            left = self._forward[number - 1][:-1, kept] + self._log_mass[:, None]
            right = self._backward[count - number][1:, kept]
            rows.append(np.exp(left + right - total[kept]) @ weight)
        gaps = np.array(rows)
        gaps /= np.maximum(gaps.sum(axis=1, keepdims=True), 1e-300)
        likeliest = gaps.argmax(axis=1)
        edges = [-1, *likeliest.tolist(), len(self.levels) - 1]
        best = kept[np.argsort(-noise[kept], kind="stable")[:8]]
        return tuple(
            self._change(question, gaps[number], edges[number] + 1, edges[number + 2], best, noise)
            for number in range(count)
        )

    def _change(
        self, question: Question, gaps: Floats, first: int, last: int, kept: Indices, noise: Floats
    ) -> LikelyChange:
        inside = np.zeros(len(gaps), dtype=np.bool_)
        inside[first:last] = True
        hypotheses = np.nonzero(inside & (gaps > MATTERS))[0]
        if len(hypotheses) == 0:
            hypotheses = np.array([int(gaps.argmax())])
        first, last = min(first, int(hypotheses[0])), max(last, int(hypotheses[-1]) + 1)
        before = self._side([range(first, gap + 1) for gap in hypotheses.tolist()], kept, noise)
        # From the last one backwards, so that each segment starts with the next shorter one.
        after = self._side([range(last, gap, -1) for gap in hypotheses.tolist()], kept, noise)
        share = gaps[hypotheses] / gaps[hypotheses].sum()
        likeliest = int(hypotheses[np.argmax(share)])
        reaches_threshold = self._reaches_threshold(
            question, (first, likeliest), (likeliest + 1, last), noise
        )
        return LikelyChange(
            first=first,
            last=last,
            gaps=gaps,
            exists=1.0,
            reaches_threshold=reaches_threshold,
            kept=hypotheses,
            before=before,
            after=after,
        )

    def _reaches_threshold(
        self, question: Question, before: tuple[int, int], after: tuple[int, int], noise: Floats
    ) -> float:
        """Return P(the levels of two segments differ by the threshold or more), given that there is a change."""
        nodes = self.lattice.nodes
        kept = np.nonzero(noise > RARE * noise.max())[0]
        weight = noise[kept] / noise[kept].sum()
        one, other = (
            self._segment_posterior(self._sums(range(first, last + 1), kept)[-1]).sum(axis=1)
            for first, last in (before, after)
        )
        below = np.cumsum(other, axis=1)
        edges = np.searchsorted(nodes, nodes + question.threshold_on_scale, side="left") - 1
        starts = np.searchsorted(nodes, nodes - question.threshold_on_scale, side="right") - 1
        padded = np.concatenate([np.zeros((len(kept), 1)), below], axis=1)
        within = padded[:, edges + 1] - padded[:, starts + 1]
        return float(np.clip(1.0 - weight @ (one * within).sum(axis=1), 0.0, 1.0))

    def _segment_posterior(self, logs: Floats) -> Floats:
        """Return the posterior of a segment's shape and level on the lattice from its log likelihoods, (S', Q, G)."""
        part: Floats = np.exp(logs - logs.max(axis=(1, 2), keepdims=True)) * self._density
        part /= part.sum(axis=(1, 2), keepdims=True)
        return part

    def _side(self, segments: Sequence[range], kept: Indices, noise: Floats) -> Side:
        """Return mean and variance of the mean sample of each segment, and the scatter of its samples.

        All segments start at one position and run in one direction.
        """
        nodes = self.lattice.nodes
        sigma = self.grid.sigma[kept]
        weight = noise[kept] / noise[kept].sum()
        usual = float(weight @ sigma**2)
        sums = self._sums(max(segments, key=len), kept)
        rows = []
        for segment in segments:
            part = self._segment_posterior(sums[len(segment) - 1])
            mixed = np.einsum("s,sqg->g", weight, part)
            # Quantiles, because outliers add a second mode.
            low, level, high = np.interp(QUANTILES, np.cumsum(mixed) - mixed / 2, nodes).tolist()
            variance = max(((high - low) / 2) ** 2, usual / 1600)
            plain = 1.0 - float(weight @ part[:, HALVED].sum(axis=1))
            values = np.concatenate([self._values[at] for at in segment])
            wide_variance = max(float(values.var()), usual)
            rows.append(
                (
                    plain * level + (1 - plain) * float(values.mean()),
                    plain * variance + (1 - plain) * wide_variance / len(values),
                    plain * usual + (1 - plain) * wide_variance,
                )
            )
        means, variances, scatters = np.array(rows).T
        return Side(mean=means, variance=variances, scatter=scatters)


def _log_sum(logs: Floats) -> Floats:
    """Return the logarithm of the sum of exponentials over the first axis."""
    top = logs.max(axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total: Floats = np.log(np.exp(logs - safe).sum(axis=0)) + safe
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimProgress:
    """Progress of an open claim: its blocks so far, and a forecast of further ones: at least, and at most.

    `around` are the positions before and after the claimed change; `None`: the claim is that nothing changed.
    """

    blocks: int
    blocks_left: tuple[int, int] | None
    around: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """A snapshot of the posterior.

    `at_or_before` is, for each built position, ascending, the probability that the change is at or before it.
    `no_change` is the probability that nothing as large as the threshold changed. `candidates` counts the
    revisions of the smallest range with 95 % of the culprit's probability. `before` and `after` are levels in
    the metric's own unit. `sigma` and `tau` are the spread of samples and of layouts, relative (0.01 is 1 %); `tau` is
    `None` in rounds, which do not model it.
    `claim` is the open claim, if the search certifies one now. `changes` is the number of likely changes: the
    candidates are those of the one with the least certain position, after the first position of `span` up to its last.
    """

    at_or_before: tuple[tuple[int, float], ...]
    no_change: float
    candidates: int
    before: float
    after: float
    sigma: float
    tau: float | None
    claim: ClaimProgress | None = None
    changes: int = 0
    span: tuple[int, int] | None = None

    def after_the_change(self, position: int) -> float | None:
        """Return P(the culprit is at or before a position, which is thus after the change); `None` if not built."""
        return dict(self.at_or_before).get(position)


def belief_of(posterior: Posterior, scale: Scale) -> Belief:
    """Return a snapshot of a posterior: for several changes, the one with the least certain position."""
    if not posterior.guesses:
        level = scale.as_value(posterior.level)
        return Belief(
            at_or_before=tuple((position, 0.0) for position in posterior.positions),
            no_change=posterior.no_change,
            candidates=posterior.positions[-1] - posterior.positions[0],
            before=level,
            after=level,
            sigma=posterior.sigma,
            tau=posterior.tau,
        )
    change = min(posterior.guesses, key=lambda each: float(each.gaps.max()))
    shares = np.minimum(np.concatenate([[0.0], np.cumsum(change.gaps) * change.exists]), 1.0)
    gaps = narrowest(posterior.positions, change.gaps, CANDIDATES_PROBABILITY) or range(len(change.gaps))
    return Belief(
        at_or_before=tuple(zip(posterior.positions, shares.tolist(), strict=True)),
        no_change=posterior.no_change,
        candidates=posterior.positions[gaps.stop] - posterior.positions[gaps.start],
        span=(posterior.positions[gaps.start], posterior.positions[gaps.stop]),
        before=scale.as_value(_level(change, change.before.mean)),
        after=scale.as_value(_level(change, change.after.mean)),
        sigma=posterior.sigma,
        tau=posterior.tau,
    )


def _level(change: LikelyChange, means: Floats) -> float:
    share = change.gaps[change.kept]
    return float(share @ means / share.sum())


def narrowest(positions: Sequence[int], gaps: Floats, probability: float) -> range | None:
    """Return the neighbouring gaps with the fewest revisions that contain a change with a probability."""
    best: range | None = None
    size = math.inf
    sums = np.concatenate([[0.0], np.cumsum(gaps)])
    for start in range(len(gaps)):
        stop = int(np.searchsorted(sums, sums[start] + probability - 1e-12))
        if start < stop <= len(gaps):
            length = positions[stop] - positions[start]
            if length < size:
                best, size = range(start, stop), length
    return best
