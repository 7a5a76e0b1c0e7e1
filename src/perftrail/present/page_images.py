"""Figures as images, drawn without a browser: SVG and PNG for a paper, and the specification they come from."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import vl_convert

from perftrail.charts.frame import config, themed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftrail.charts.frame import Figure
    from perftrail.ports import Engine, Pending

VEGA_LITE = "6.4"
"""The version of Vega-Lite that the page and the images are drawn with."""

PNG_SCALE = 2.0

SNIPPET = "window.vegaEmbed = vegaEmbed;"
"""What the page's own script needs of the bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A figure as SVG and as PNG, which may still be being made."""

    svg: str
    image: bytes | Pending[bytes]

    @property
    def png(self) -> bytes:
        """The PNG, waited for; asked once."""
        return self.image if isinstance(self.image, bytes) else self.image.outcome()


class Drawings:
    """Figures as SVG, each drawn by an engine as soon as it is known, while what stands around it is made."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._begun: dict[str, Pending[str]] = {}
        engine.begin(_start, "")

    def begin(self, figure: Figure) -> None:
        """Have a figure drawn, once."""
        if figure.name not in self._begun:
            self._begun[figure.name] = self._engine.begin(svg, figure)

    def drawn(self, figures: Sequence[Figure]) -> Mapping[str, Drawn]:
        """Give figures by their names as they are drawn; asked once.

        The first two thirds of the PNGs are made here, as long as the engine is still drawing the others.
        """
        found: dict[str, Drawn] = {}
        for name, still in self._stills(figures):
            image = png(still) if len(found) * 3 < len(figures) * 2 else self._engine.begin(png, still)
            found[name] = Drawn(svg=still, image=image)
        return found

    def stills(self, figures: Sequence[Figure]) -> Mapping[str, str]:
        """Give figures as SVG alone by their names; asked once."""
        return dict(self._stills(figures))

    def _stills(self, figures: Sequence[Figure]) -> Iterator[tuple[str, str]]:
        for figure in figures:
            self.begin(figure)
        for figure in figures:
            yield figure.name, self._begun[figure.name].outcome()


def _start(title: str) -> None:
    """Draw nothing: what draws takes half a second until it can."""
    vl_convert.vegalite_to_svg({"title": title, "mark": "point"}, vl_version=VEGA_LITE)


def svg(figure: Figure) -> str:
    """Draw a figure as SVG, for a white page.

    Its marks have no words for who cannot see them, which are half of a large one: as an image it has its caption's.
    """
    spec = themed(figure.spec, "light")
    silent = {**spec, "config": {**config("light"), "aria": False}}
    drawn: str = vl_convert.vegalite_to_svg(silent, vl_version=VEGA_LITE)
    return drawn


def png(drawn: str) -> bytes:
    """Make a PNG of an SVG."""
    image: bytes = vl_convert.svg_to_png(drawn, scale=PNG_SCALE)
    return image


def write_images(figure: Figure, drawn: Drawn, directory: Path) -> None:
    """Write a figure's SVG, PNG and specification beside each other."""
    spec = themed(figure.spec, "light")
    (directory / f"{figure.name}.svg").write_text(drawn.svg, encoding="utf-8")
    (directory / f"{figure.name}.png").write_bytes(drawn.png)
    (directory / f"{figure.name}.vl.json").write_text(json.dumps(spec), encoding="utf-8")


def bundle_name() -> str:
    """Name what `bundle` gives: another script has another name."""
    return f"vega-{VEGA_LITE}-{version('vl-convert-python')}"


@cache
def bundle() -> str:
    """Give Vega, Vega-Lite and Vega-Embed as one script without anything to load.

    Putting it together takes seconds, so it is kept in the user's own cache: nobody else may write there, as
    somebody may into a study's results.
    """
    kept = _cache() / f"{bundle_name()}.js"
    with suppress(OSError, UnicodeDecodeError):
        return kept.read_text(encoding="utf-8")
    script: str = vl_convert.javascript_bundle(SNIPPET, vl_version=VEGA_LITE)
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        new = kept.with_suffix(f".{os.getpid()}")
        new.write_text(script, encoding="utf-8")
        new.replace(kept)
    return script


def _cache() -> Path:
    """The directory for what can be made again, as the XDG base directory specification has it."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if Path(named).is_absolute() else Path.home() / ".cache") / "perftrail"
