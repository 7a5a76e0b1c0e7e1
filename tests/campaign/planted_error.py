"""``python -m tests.campaign.planted_error …``: perftrail, whose dashboard fails for one operation of the API."""

from __future__ import annotations

import sys
from typing import NoReturn

from starlette.routing import Route

from perftrail.cli.main import main
from perftrail.web import app


async def fail(_: object) -> NoReturn:
    raise RuntimeError("planted")


if __name__ == "__main__":
    planted = f"{app.STUDY_API}/searches"
    app.API[:] = [Route(each.path, fail) if each.path == planted else each for each in app.API]
    sys.argv[0] = "perftrail"
    main()
