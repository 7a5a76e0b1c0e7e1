"""One small example of each chart, and text that must never be evaluated or rendered as markup."""

from __future__ import annotations

from perftrail.charts.comparison import ComparisonRow, ratio_chart
from perftrail.charts.curve import CurvePoint, GivenUp, Labels, curve, speed_up
from perftrail.charts.frame import Chart, HistoryPoint, Palette
from perftrail.charts.heatmap import Cell, heat
from perftrail.charts.history import Events, Gap, Mark, history
from perftrail.charts.posterior import BelievedStep, belief
from perftrail.charts.samples import samples

HOSTILE = "</script><img src=x onerror=alert(1)>'\"\\ {{7*7}} \u202e"
PALETTE = Palette(("plain", HOSTILE))
LABELS = Labels(name="example", title="A title", axis="threads", metric="wall", unit="s")


def points(subject: str, *values: float) -> list[CurvePoint]:
    return [
        CurvePoint(subject=subject, at=2.0**n, value=value, low=0.9 * value, high=1.1 * value, count=5)
        for n, value in enumerate(values)
    ]


def along(*positions: int, subject: str = "plain", revision: str = "r") -> list[HistoryPoint]:
    return [
        HistoryPoint(
            position=position,
            subject=subject,
            revision=revision,
            value=0.1 + position,
            low=0.09 + position,
            high=0.11 + position,
            count=5,
            last=position,
        )
        for position in positions
    ]


def examples() -> dict[str, Chart]:
    """Every kind of chart, with hostile names where names are drawn."""
    both = [*points("plain", 4.0, 2.1, 1.2), *points(HOSTILE, 40.0, 31.0)]
    lost = [GivenUp(subject=HOSTILE, at=4.0, why="over 60s", limit=60.0)]
    events = Events(
        length=6,
        changes=(Mark(position=3, word=HOSTILE),),
        releases=(Mark(position=0, word="v1"), Mark(position=5, word=HOSTILE)),
        failed=(Mark(position=2, word="r2: build"),),
        gaps=(Gap(first=1, last=2, why=HOSTILE),),
        steps=(Mark(position=0, word="1"), Mark(position=5, word="2")),
    )
    believed = [
        BelievedStep(number=1, position=0, words="measured", changed=(), no_change=0.0),
        BelievedStep(number=2, position=5, words=HOSTILE, changed=((0, 0.0), (5, 0.98)), no_change=0.02),
        BelievedStep(number=3, position=3, words="m", changed=((0, 0.0), (3, 0.9), (5, 1.0)), no_change=0.0),
    ]
    compared = [
        ComparisonRow(
            row=f"{HOSTILE} mt",
            subject=HOSTILE,
            ratios=(0.9, 0.92, 0.88),
            effect=0.9,
            low=0.88,
            high=0.92,
            verdict="better",
        )
    ]
    cells = [
        Cell(row="mt: all 2", column="v2", ratio=1.7, low=1.6, high=1.8, standing="differs", whole=True),
        Cell(row=f"mt {HOSTILE}", column="v2", ratio=3.0, low=2.9, high=3.1, standing="differs"),
        Cell(row="mt two", column="v2", ratio=0.96, low=0.7, high=1.3),
        Cell(row="st", column="v2", ratio=1.001, low=0.999, high=1.003, standing="same"),
        Cell(row="st", column=HOSTILE, ratio=None, why=HOSTILE),
    ]
    rows = {"r1": (1.0, 1.1, 1.3), HOSTILE: (2.0, 2.2)}
    return {
        "curve": curve(both, lost, labels=LABELS, palette=PALETTE),
        "speed-up": speed_up(both, labels=LABELS, palette=PALETTE),
        "history": history(along(0, 3, 4, 5, revision=HOSTILE), events, labels=LABELS, palette=PALETTE),
        "samples": samples(rows, labels=LABELS, palette=PALETTE, kinds={"r1": "plain", HOSTILE: HOSTILE}),
        "against": ratio_chart(compared, name="against", title="Against", reference=HOSTILE, palette=PALETTE),
        "belief": belief(believed, length=6, culprits=[3]),
        "heat": heat(cells, reference=HOSTILE, name="heat", omitted_rows=3),
    }
