"""The one walk over settings: every value that holds no others, with the way to it.

What is said, compared, hashed or looked for in settings is a loop over ``leaves``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

Loc = tuple[str | int, ...]
"""The way to a setting: names of sections and settings, keys of mappings, numbers of list items."""


class Leaf(NamedTuple):
    """A value that is no section, mapping or list, or an empty one of the latter. ``field`` is the setting
    that holds it, None below plain values.
    """

    path: Loc
    field: FieldInfo | None
    value: Any

    @property
    def dotted(self) -> str:
        return ".".join(map(str, self.path))


def leaves(
    value: Any, path: Loc = (), field: FieldInfo | None = None, *, whole: bool = False
) -> Iterator[Leaf]:
    """The leaves of settings, or of the plain values that they were dumped to, in their order.

    With ``whole`` lists and mappings are leaves: what is compared is a setting, and not what stands in it.
    """
    below: Any = ()
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        below = ((name, getattr(value, name), each) for name, each in fields.items())
    elif isinstance(value, dict) and value and not whole:
        below = ((str(key), item, field) for key, item in value.items())
    elif isinstance(value, list | tuple) and value and not whole:
        below = ((number, item, field) for number, item in enumerate(value))
    else:
        yield Leaf(path, field, value)
    for name, inner, each in below:
        yield from leaves(inner, (*path, name), each, whole=whole)
