r"""How many steps there are, and where: the posterior over any number of steps between built revisions.

The level stays from one built revision to the next, or moves in the gap between them. With l_k(m) the
likelihood of build k at the level m, F_c(k, m) that of the builds up to k with c steps among them and the
level m at k, and mu_k the prior mass of gap k,

``F_c(k+1, m) = l_{k+1}(m) [F_c(k, m) + mu_k integral F_{c-1}(k, m0) p(m | m0) dm0]``

and the same backwards: the forward-backward recursion of a product-partition model (Barry and Hartigan
1992; Fearnhead 2006), with the number of steps kept apart. With c steps of several, each is of the smallest
size worth finding at least: a lesser one is no second change. At most one step is seen in a gap.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from perftrail.search.belief import jump_prior

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.noise import Likelihoods
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]
    Halves = npt.NDArray[np.float32]

ANOTHER = 0.15
"""How likely one more step is beforehand, once there is one."""

MOST_STEPS = 6
"""So many steps are told apart at most; more count as so many."""

_ENOUGH = (2, 4, MOST_STEPS)
"""So many steps are counted; more only where the last of them is not negligible."""

_MATTERS = 1e-3

_SURELY = 0.9
"""A build belongs to a segment when it does so with this probability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The belief about several steps.

    `counts` (C+1,) is the probability of 0, 1, ... steps. `count` is the likely number of them, the median;
    given it, `places` (count, K-1) says where each is, and `members` (K, count+1) to which segment each build
    belongs. `further` (K-1,) says where there are more if there are more: all zero when there cannot be.
    `noise` (S,) weighs the pairs of sigma and tau. `log_evidence` is the logarithm of the probability of all
    readings, over all numbers of steps.
    """

    counts: Floats
    count: int
    places: Floats
    members: Floats
    further: Floats
    noise: Floats
    log_evidence: float

    @property
    def more(self) -> float:
        """P(there are more steps than the likely number)."""
        return float(self.counts[self.count + 1 :].sum())

    def surely(self, segment: int) -> npt.NDArray[np.int64]:
        """Return the builds that surely belong to a segment, at least the one that does most likely."""
        share = self.members[:, segment]
        return np.nonzero(share >= min(_SURELY, float(share.max())))[0]


def find_steps(question: Question, likelihoods: Likelihoods, levels: Floats, mass: Floats) -> Steps:
    """Work out the belief about several steps between builds, two at least.

    `levels` (K, S, G) are the logarithms of the builds' likelihoods (`levels.side_levels`), `mass` (K-1,) is
    the prior probability of each gap; what is left to one lies outside the builds.
    """
    jump = jump_prior(likelihoods, 2 * question.smallest_log)
    leap = jump * (likelihoods.apart >= question.smallest_log)
    noise = likelihoods.grid.log_prior.reshape(-1)
    outside = max(0.0, 1.0 - float(mass.sum()))
    kept = np.arange(len(noise))
    weight = np.ones((1, len(noise)))
    for most in sorted({min(len(mass), enough) for enough in _ENOUGH}):
        kept = kept[weight.max(axis=0) > _MATTERS]
        chain = _Chain(levels[:, kept], noise[kept], mass, jump, leap, most)
        logs = _weigh(question, chain, outside)
        weight = np.exp(logs - logs.max())
        total = float(weight.sum())
        weight /= total
        if weight[most].sum() < _MATTERS:
            break
    counts = weight.sum(axis=1)
    noise_weight = np.zeros(len(noise))
    noise_weight[kept] = weight.sum(axis=0)
    count = int(np.searchsorted(np.cumsum(counts), 0.5))
    next_best = count + 1 + int(np.argmax(counts[count + 1 :])) if count < most else count
    asked = weight[[count, next_best]]
    matters = (asked > _MATTERS * asked.max(axis=1, keepdims=True)).any(axis=0)
    chain, weight = chain.only(matters), weight[:, matters]
    places = chain.places(count, weight[count])
    further = np.zeros(len(mass))
    if count < most:
        others = chain.places(next_best, weight[next_best]).sum(axis=0)
        further = np.maximum(others - places.sum(axis=0), 0.0)
    return Steps(
        counts=counts,
        count=count,
        places=places,
        members=chain.members(count, weight[count]),
        further=further,
        noise=noise_weight,
        log_evidence=float(logs.max()) + math.log(total),
    )


def _weigh(question: Question, chain: _Chain, outside: float) -> Floats:
    """Return the logarithm of prior and evidence of each number of steps and each noise pair, (C+1, S)."""
    prior = [question.no_change + outside * (1 - question.no_change)]
    for count in range(1, chain.most + 1):
        # The steps of one set can be drawn in so many orders.
        share = (1 - ANOTHER) * ANOTHER ** (count - 1) * math.factorial(count)
        prior.append((1 - question.no_change) * share)
    evidence = np.array([chain.total(count) for count in range(chain.most + 1)])
    logs: Floats = np.log(prior)[:, None] + evidence
    return logs


class _Chain:
    """The recursions forwards and backwards, for each number of steps and each pair of sigma and tau.

    Arrays have the shape (K, C+2, S, G): the last row holds one step of any size, for when there is but one.
    They are relative to their peaks, so that single precision is enough.
    """

    def __init__(
        self, levels: Floats, noise: Floats, mass: Floats, jump: Floats, leap: Floats, most: int
    ) -> None:
        self.most = most
        self._noise = noise
        self._mass = mass
        self._jump = jump.astype(np.float32)
        self._leap = leap.astype(np.float32)
        self._peaks = levels.max(axis=2)
        self._own = np.exp(levels - self._peaks[:, :, None]).astype(np.float32)
        self._forward, self._forward_scale = self._run(self._own, self._peaks, mass)

    def only(self, pairs: npt.NDArray[np.bool_]) -> _Chain:
        """Return the chain of some pairs of sigma and tau: where the steps are is asked of these alone."""
        chain = copy(self)
        chain._noise = self._noise[pairs]
        chain._peaks = self._peaks[:, pairs]
        chain._own = self._own[:, pairs]
        chain._forward = self._forward[:, :, pairs]
        chain._forward_scale = self._forward_scale[:, pairs]
        return chain

    @cached_property
    def _backward(self) -> tuple[Halves, Floats]:
        rows, scales = self._run(self._own[::-1], self._peaks[::-1], self._mass[::-1])
        return rows[::-1], scales[::-1]

    def _run(self, own: Halves, peaks: Floats, mass: Floats) -> tuple[Halves, Floats]:
        rows = np.zeros((len(own), self.most + 2, *own.shape[1:]), dtype=np.float32)
        scales = np.zeros(peaks.shape)
        rows[0, 0] = own[0]
        scales[0] = peaks[0]
        flat = (-1, own.shape[2])
        for build in range(1, len(own)):
            before, row = rows[build - 1], rows[build]
            leaps = (before[:-2].reshape(flat) @ self._leap).reshape(before[:-2].shape)
            row[:] = before
            row[1:-1] += np.float32(mass[build - 1]) * leaps
            row[-1] += np.float32(mass[build - 1]) * (before[0] @ self._jump)
            row *= own[build]
            top = np.maximum(row.max(axis=(0, 2)), 1e-30)
            row /= top[None, :, None]
            scales[build] = scales[build - 1] + peaks[build] + np.log(top)
        return rows, scales

    def total(self, count: int) -> Floats:
        """Return the logarithm of the evidence for so many steps, for each pair of sigma and tau: (S,)."""
        row = -1 if count == 1 else count
        with np.errstate(divide="ignore"):
            last: Floats = np.log(self._forward[-1, row].sum(axis=1))
        total: Floats = last + self._forward_scale[-1] + self._noise
        return total

    def places(self, count: int, weight: Floats) -> Floats:
        """P(each step in each gap) given their number, (count, K-1); `weight` (S,) weighs the noise pairs."""
        backward, scale = self._backward
        halves = self._forward_scale[:-1] + scale[1:]
        kernel = self._jump if count == 1 else self._leap
        moved = backward[1:, :count]
        right = (moved.reshape(-1, moved.shape[-1]) @ kernel).reshape(moved.shape)[:, ::-1]
        parts = np.einsum("kcsg,kcsg->kcs", self._forward[:-1, :count], right)
        found = self._mass * self._joint(parts, halves, count, weight)
        return _shares(found)

    def members(self, count: int, weight: Floats) -> Floats:
        """P(each build belongs to each segment) given the number of steps, (K, count+1)."""
        backward, scale = self._backward
        halves = self._forward_scale + scale - self._peaks
        rows = [0, -1] if count == 1 else [*range(count + 1)]
        left, right = self._forward[:, rows], backward[:, rows[::-1]]
        shared = np.maximum(self._own, 1e-30)[:, None]
        parts = np.einsum("kcsg,kcsg->kcs", left, right / shared)
        return _shares(self._joint(parts, halves, count, weight).T)

    def _joint(self, parts: Floats, halves: Floats, count: int, weight: Floats) -> Floats:
        """Bring the products of two halves (K, C, S) to one scale, and sum them over the noise pairs: (C, K)."""
        scale = halves + self._noise - np.where(weight > 0, self.total(count), np.inf)
        joint: Floats = np.einsum("kcs,ks,s->ck", parts, np.exp(np.minimum(scale, 600.0)), weight)
        return joint


def _shares(found: Floats) -> Floats:
    shares: Floats = found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300)
    return shares
