"""What the readings of each build say of its side's level, on one lattice for all; equal artefacts once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perftrail.search import noise

if TYPE_CHECKING:
    import numpy.typing as npt

    from perftrail.search.evidence import Evidence
    from perftrail.search.question import Question

    Floats = npt.NDArray[np.float64]


def all_likelihoods(
    question: Question, layouts: list[tuple[Floats, ...]], known: noise.Likelihoods | None
) -> noise.Likelihoods:
    """Lay one lattice and noise grid for the layouts of all builds; `known` ones are kept where they fit."""
    builds = [values for each in layouts for values in each]
    drawn = [np.sort(np.concatenate(each[1:])) for each in layouts if len(each) > 2]
    likely = np.concatenate([noise.likely_levels(values) for values in builds])
    sigma, freedom = noise.pooled_sigma(builds)
    sigma = max(sigma, question.smallest_log / (2.0 if freedom == 0 else noise.RESOLUTION))
    sigma = noise.on_ladder(sigma)
    most = max(len(values) for values in builds)
    while True:
        lattice = noise.lay_lattice(likely, sigma, most)
        if len(lattice.nodes) <= noise.MOST_NODES:
            break
        # Builds that differ by far more than their readings: the finest noise cannot be what parts them.
        sigma *= 2
    grid = noise.noise_grid(sigma, freedom, question.smallest_log, noise.pooled_sigma(drawn)[0])
    if known is not None and known.fits(lattice, grid):
        return known
    return noise.Likelihoods(lattice, grid, sigma)


def between_equals(evidence: Evidence, positions: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Which gaps lie between equal artefacts, and so cannot hold a single step, shape (K-1,)."""
    places = np.asarray(positions)
    inside = np.zeros(len(places) - 1, dtype=np.bool_)
    for low, high in evidence.spans:
        inside |= (places[:-1] >= low) & (places[1:] <= high)
    return inside


def side_levels(evidence: Evidence, positions: tuple[int, ...], likelihoods: noise.Likelihoods) -> Floats:
    """Return log p(all readings of a build | its side's level), shape (K, S, G); equal artefacts count once."""
    shape = (likelihoods.grid.tau.size, -1)
    flat = np.zeros((likelihoods.grid.tau.size, len(likelihoods.lattice.nodes)))
    return np.stack(
        [
            sum((likelihoods.of(values)[1].reshape(shape) for values in evidence.layouts(position)), flat)
            if evidence.representative(position) == position
            else flat
            for position in positions
        ]
    )
