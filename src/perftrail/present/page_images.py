"""Draw charts without a browser, as SVG and PNG for a paper, together with their specifications."""

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
"""Version of Vega-Lite for page and images."""

PNG_SCALE = 2.0

SNIPPET = "window.vegaEmbed = vegaEmbed;"
"""What the page's script needs from the bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A chart as SVG and as PNG, which may still be drawn."""

    svg: str
    image: bytes | Pending[bytes]

    @property
    def png(self) -> bytes:
        """Wait for the PNG, and return it. Call it once."""
        return self.image if isinstance(self.image, bytes) else self.image.outcome()


class Drawings:
    """Charts as SVG; an engine draws each as soon as it is known."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._begun: dict[str, Pending[str]] = {}
        engine.begin(_start, "")

    def begin(self, figure: Figure) -> None:
        """Start to draw a chart, once."""
        if figure.name not in self._begun:
            self._begun[figure.name] = self._engine.begin(svg, figure)

    def drawn(self, figures: Sequence[Figure]) -> Mapping[str, Drawn]:
        """Yield charts by name as they are drawn. Call it once.

        Two thirds of the PNGs are made here while the engine draws the other charts.
        """
        found: dict[str, Drawn] = {}
        for name, still in self._stills(figures):
            image = png(still) if len(found) * 3 < len(figures) * 2 else self._engine.begin(png, still)
            found[name] = Drawn(svg=still, image=image)
        return found

    def stills(self, figures: Sequence[Figure]) -> Mapping[str, str]:
        """Return charts as SVG alone by name. Call it once."""
        return dict(self._stills(figures))

    def _stills(self, figures: Sequence[Figure]) -> Iterator[tuple[str, str]]:
        for figure in figures:
            self.begin(figure)
        for figure in figures:
            yield figure.name, self._begun[figure.name].outcome()


def _start(title: str) -> None:
    """Draw nothing, to start the renderer, which takes half a second."""
    vl_convert.vegalite_to_svg({"title": title, "mark": "point"}, vl_version=VEGA_LITE)


def svg(figure: Figure) -> str:
    """Return a chart as SVG, for a white page.

    Descriptions of single marks are left out: they are half of a large image, which has its caption's instead.
    """
    spec = themed(figure.spec, "light")
    silent = {**spec, "config": {**config("light"), "aria": False}}
    drawn: str = vl_convert.vegalite_to_svg(silent, vl_version=VEGA_LITE)
    return drawn


def png(drawn: str) -> bytes:
    """Return an SVG as PNG."""
    image: bytes = vl_convert.svg_to_png(drawn, scale=PNG_SCALE)
    return image


def write_images(figure: Figure, drawn: Drawn, directory: Path) -> None:
    """Write a chart's SVG, PNG and specification into a directory."""
    spec = themed(figure.spec, "light")
    (directory / f"{figure.name}.svg").write_text(drawn.svg, encoding="utf-8")
    (directory / f"{figure.name}.png").write_bytes(drawn.png)
    (directory / f"{figure.name}.vl.json").write_text(json.dumps(spec), encoding="utf-8")


def bundle_name() -> str:
    """Return the name of the script that `bundle` returns; it depends on the content."""
    return f"vega-{VEGA_LITE}-{version('vl-convert-python')}"


@cache
def bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that loads nothing.

    Bundling takes seconds, so the result is cached in the user's own cache directory, where nobody else can write.
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
    """Return the user's cache directory, as the XDG base directory specification says."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if Path(named).is_absolute() else Path.home() / ".cache") / "perftrail"
