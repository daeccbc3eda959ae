"""
A session's transcript: the client's file, read backwards from its end into the record of one turn.
"""

from .reader import Limits, read
from .record import Message, Notice, Record, ToolUse
from .tasks import launched_by, notified

__all__ = ["Limits", "Message", "Notice", "Record", "ToolUse", "launched_by", "notified", "read"]
