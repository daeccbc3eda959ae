"""
A property that is worked out when it is first asked for, and kept.

As `functools.cached_property`, but in Python 3.11 that holds one lock for all objects of a class: in a service one stop that reads from a
slow disk would keep all others waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, Self, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801 - used as a decorator
    """
    Decorates a method without arguments. Two threads that ask at once may both work it out; its objects belong to one thread.
    """

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out: Final = work_out
        self.__doc__ = work_out.__doc__

    @overload
    def __get__(self, found: None, owner: type) -> Self: ...

    @overload
    def __get__(self, found: object, owner: type) -> T: ...

    def __get__(self, found: object, owner: type) -> Self | T:
        if found is None:
            return self
        value = self._work_out(found)
        # From now on the object's own attribute comes first.
        found.__dict__[self._work_out.__name__] = value
        return value
