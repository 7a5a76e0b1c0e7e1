"""Posting a message to an address, signed where there is a secret."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

import requests

from perftrail import __version__
from perftrail.errors import NoticeFailed
from perftrail.model.wording import quoted

if TYPE_CHECKING:
    from perftrail.notices.message import Message

TIMEOUT_SECONDS = (10.0, 30.0)
"""To connect, and to answer."""


def post(message: Message, address: str, *, secret: str = "") -> None:
    """Post a message as JSON; only an answer of 200 to 299 counts. Raises `NoticeFailed`.

    With a secret, ``X-Perftrail-Signature`` is ``sha256=`` and the HMAC of the body in hexadecimal digits. Nobody is
    followed elsewhere.
    """
    body = message.body()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"perftrail/{__version__}",
        "X-Perftrail-Id": message.id,
    }
    if secret:
        headers["X-Perftrail-Signature"] = f"sha256={signature(body, secret)}"
    try:
        with requests.post(
            address, data=body, headers=headers, timeout=TIMEOUT_SECONDS, allow_redirects=False, stream=True
        ) as answer:
            code = answer.status_code
    except (requests.RequestException, ValueError) as error:
        raise NoticeFailed(f"webhook: {type(error).__name__}: it cannot be reached") from error
    if not 200 <= code < 300:
        raise NoticeFailed(f"webhook: answered {code} {quoted(answer.reason or '')}")


def signature(body: bytes, secret: str) -> str:
    """Give the HMAC of a body, SHA-256 in hexadecimal digits."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
