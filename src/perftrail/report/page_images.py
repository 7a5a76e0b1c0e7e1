"""Figures as images, drawn without a browser: SVG and PNG for a paper, and the specification they come from."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import vl_convert

from perftrail.figures.frame import themed

if TYPE_CHECKING:
    from pathlib import Path

    from perftrail.figures.frame import Figure

VEGA_LITE = "6.4"
"""The version of Vega-Lite that the page and the images are drawn with."""

PNG_SCALE = 2.0

SNIPPET = "window.vegaEmbed = vegaEmbed;"
"""What the page's own script needs of the bundle."""


def svg(figure: Figure) -> str:
    """Draw a figure as SVG, for a white page."""
    drawn: str = vl_convert.vegalite_to_svg(themed(figure.spec, "light"), vl_version=VEGA_LITE)
    return drawn


def write_images(figure: Figure, drawn: str, directory: Path) -> None:
    """Write a figure's SVG, PNG and specification beside each other."""
    spec = themed(figure.spec, "light")
    (directory / f"{figure.name}.svg").write_text(drawn, encoding="utf-8")
    png = vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=PNG_SCALE)
    (directory / f"{figure.name}.png").write_bytes(png)
    (directory / f"{figure.name}.vl.json").write_text(json.dumps(spec, indent=1), encoding="utf-8")


@cache
def bundle() -> str:
    """Give Vega, Vega-Lite and Vega-Embed as one script without anything to load."""
    script: str = vl_convert.javascript_bundle(SNIPPET, vl_version=VEGA_LITE)
    return script
