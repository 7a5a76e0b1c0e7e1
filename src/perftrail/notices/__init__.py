"""Telling others: a message by webhook or by mail. What fails raises `NoticeFailed`, and may be tried again."""

from perftrail.notices.deadline import within
from perftrail.notices.mail import MailServer, send_mail
from perftrail.notices.message import Message
from perftrail.notices.webhook import post

__all__ = ["MailServer", "Message", "post", "send_mail", "within"]
