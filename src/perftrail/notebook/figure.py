"""A figure as a notebook shows it: interactive where it can be, a still image elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftrail.charts.frame import themed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from perftrail.charts.frame import Figure, Spec
    from perftrail.model.search_record import Json

VEGA_LITE = "application/vnd.vegalite.v5+json"
"""What notebooks know to draw: the specifications are valid in Vega-Lite 5 and 6 alike, and drawn alike."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
SVG = "image/svg+xml"
TEXT = "text/plain"


@dataclass(frozen=True, slots=True, repr=False)
class ShownFigure:
    """A figure of a study. As the last value of a notebook's cell it is drawn.

    Titles and captions may hold hostile text, such as names of revisions.
    """

    figure: Figure

    @property
    def name(self) -> str:
        """The figure's name, which is fit for a file."""
        return self.figure.name

    @property
    def title(self) -> str:
        """What the figure shows."""
        return self.figure.title

    @property
    def caption(self) -> str:
        """What its marks mean."""
        return self.figure.caption

    @property
    def spec(self) -> Spec:
        """The Vega-Lite specification with its data, complete: `altair.Chart.from_dict` takes it too."""
        return {"$schema": SCHEMA, **self._titled().spec}

    def svg(self) -> str:
        """The figure as SVG, on white."""
        from perftrail.present.page_images import svg  # noqa: PLC0415 - what draws it takes 40 MB

        return svg(self._titled())

    def _titled(self) -> Figure:
        """The figure with what a report says around it."""
        words: Spec = {"title": {"text": self.title, "anchor": "start"}, "description": self.caption}
        return replace(self.figure, spec=themed({**self.figure.spec, **words}, "light"))

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Json]:
        """Give what a notebook may show, in its own order of preference; only what is asked for is made."""
        makers: dict[str, Callable[[], Json]] = {
            VEGA_LITE: lambda: self.spec,
            SVG: self.svg,
            TEXT: lambda: repr(self),
        }
        wanted = set(include or makers) - set(exclude or ())
        return {kind: make() for kind, make in makers.items() if kind in wanted}

    def __repr__(self) -> str:
        return f"{self.title}\n{self.caption}".strip()
