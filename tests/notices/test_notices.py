"""Notices to real servers on this machine: signed posts, mails through TLS, nothing unencrypted."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from perftrail.errors import NoticeFailed
from perftrail.webhook_and_mail import MailServer, Message, post, send_mail
from tests.fakes.receivers import certificate, free_port, mail_server, web_server

MESSAGE = Message(
    id="0123abcd",
    subject="work.wall 5 % more\r\nBcc: everybody@example.org",
    text="work.wall: 5 % more\n\x1b[31msince 1234 “quoted” \u202e\n",
    data={"metric": "work.wall", "answer": {"verdict": "found"}},
)


def test_a_post_is_json_signed_by_the_secret() -> None:
    with web_server() as posted:
        post(MESSAGE, posted.address, secret="s3cret")
    [body], [headers] = posted.bodies, posted.headers
    data = json.loads(body)
    assert (data["id"], data["metric"], data["answer"]["verdict"]) == ("0123abcd", "work.wall", "found")
    assert headers["X-Perftrail-Id"] == "0123abcd"
    expected = hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
    assert headers["X-Perftrail-Signature"] == f"sha256={expected}"


def test_a_chat_message_mentions_no_user_and_the_data_is_unchanged() -> None:
    subject = "slower \x1b[31m<!channel>"
    message = replace(MESSAGE, subject=subject, text="@all\n<https://evil|click>\x07\n", data={"by": "@all"})
    data = json.loads(message.body())
    assert data["subject"] == "slower \\x1b[31m<\u200b!channel>"
    assert data["text"] == "@\u200ball\n<\u200bhttps://evil|click>\\x07\n"
    assert data["by"] == "@all"


def test_without_a_secret_nothing_is_signed() -> None:
    with web_server() as posted:
        post(MESSAGE, posted.address)
    assert "X-Perftrail-Signature" not in posted.headers[0]


@pytest.mark.parametrize("code", [302, 404, 500])
def test_an_unsuccessful_answer_is_a_failure_and_no_redirect_is_followed(code: int) -> None:
    with web_server() as posted:
        posted.code = code
        with pytest.raises(NoticeFailed, match=str(code)):
            post(MESSAGE, posted.address)
    assert posted.refused == 1


def test_a_receiver_that_is_down_is_a_failure() -> None:
    with pytest.raises(NoticeFailed, match="cannot be reached"):
        post(MESSAGE, f"http://127.0.0.1:{free_port()}/hook")
    with pytest.raises(NoticeFailed, match="mail"):
        send_mail(
            MESSAGE, "team@example.org", MailServer(host="127.0.0.1", port=free_port(), sender="a@b.example")
        )


def test_a_mail_is_one_message_whatever_its_subject_contains() -> None:
    with mail_server() as mails:
        server = MailServer(host="127.0.0.1", port=mails.port, sender="perftrail@example.org")
        send_mail(MESSAGE, "team@example.org", server)
    [mail] = mails.mails
    assert mail["To"] == "team@example.org"
    assert mail["Bcc"] is None
    assert mail["Subject"].startswith("work.wall 5 % more")
    assert mail["Message-ID"] == "<0123abcd@perftrail.invalid>"
    assert parsedate_to_datetime(mail["Date"]).tzinfo is not None
    text = mail.get_payload(decode=True)
    assert isinstance(text, bytes)
    assert "\x1b" not in text.decode()
    assert "“quoted”" in text.decode()


def test_a_mail_goes_through_tls_where_the_server_offers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = certificate(tmp_path)
    with mail_server(own) as mails:
        server = MailServer(host="127.0.0.1", port=mails.port, sender="perftrail@example.org")
        with pytest.raises(NoticeFailed, match="certificate"):
            send_mail(MESSAGE, "team@example.org", server)
        monkeypatch.setenv("SSL_CERT_FILE", str(own))
        send_mail(MESSAGE, "team@example.org", server)
    assert mails.encrypted == [True]


def test_on_the_port_for_it_tls_is_spoken_from_the_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    with mail_server(own, at_once=True) as mails:
        monkeypatch.setattr("perftrail.webhook_and_mail.TLS_PORT", mails.port)
        server = MailServer(host="127.0.0.1", port=mails.port, sender="perftrail@example.org")
        send_mail(MESSAGE, "team@example.org", server)
    assert mails.encrypted == [True]


def test_an_accepted_mail_is_sent_whatever_the_server_answers_to_quit() -> None:
    with mail_server() as mails:
        mails.parting = "421 going down"
        server = MailServer(host="127.0.0.1", port=mails.port, sender="perftrail@example.org")
        send_mail(MESSAGE, "team@example.org", server)
    assert len(mails.mails) == 1


def test_a_password_is_never_sent_in_the_clear() -> None:
    with mail_server() as mails:
        server = MailServer(
            host="127.0.0.1", port=mails.port, sender="perftrail@example.org", user="me", password="s3cret"
        )
        with pytest.raises(NoticeFailed, match="STARTTLS"):
            send_mail(MESSAGE, "team@example.org", server)
    assert mails.mails == []
