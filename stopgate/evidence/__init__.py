"""
The evidence: what the record of a turn shows without any model, told line by line and free of secrets.
"""

from .builder import build_turn

__all__ = ["build_turn"]
