"""The one walk over settings: over their classes, over values, or over values as their classes have them.

What is said, compared, hashed, looked for or resolved in settings is a loop over ``places``,
``leaves`` or ``mapped``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from guardrail.secrets import Secret

Loc = tuple[str | int, ...]
"""The way to a setting: names of sections and settings, keys of mappings, numbers of list items."""

NAME: Final = "NAME"
ITEM: Final = "N"
"""In the paths of classes: a name that the user chooses, and an item's number."""

_ABSENT: Final = object()


class Place(NamedTuple):
    """A section, a setting, or what stands in a mapping or list. ``kind`` is the annotation of what may stand
    there, None where nothing is known; ``field`` is the setting that it is or stands in, None below plain
    values; ``value`` is left out where the place is one of a class.
    """

    path: Loc
    kind: Any
    field: FieldInfo | None = None
    value: Any = _ABSENT

    @property
    def dotted(self) -> str:
        return ".".join(map(str, self.path))

    @property
    def section(self) -> type[BaseModel] | None:
        """The settings class that stands there, or may."""
        found = (type(self.value), *kinds(self.kind))
        return next((each for each in found if isinstance(each, type) and issubclass(each, BaseModel)), None)

    @property
    def fields(self) -> Mapping[str, FieldInfo]:
        """Those of the section; none for anything else."""
        return {} if self.section is None else self.section.model_fields

    def step(self, part: Any, value: Any = _ABSENT) -> Place:
        """The place below this one by its name, key or number."""
        if self.section is not None:
            field = self.fields.get(part) if isinstance(part, str) else None
            kind = field and (
                Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
            )
            return Place((*self.path, part), kind, field, value)
        if Secret in kinds(self.kind):  # {file: PATH} or {env: VARIABLE}
            return Place((*self.path, part), Path if part == "file" else str, self.field, value)
        inner = self._inner()
        # Of a mapping to Any the mapping is described, not what may stand in it.
        return Place((*self.path, part), inner, None if inner is Any else self.field, value)

    def below(self) -> Iterator[Place]:
        """The places directly below, by the value or else by the class; none if it holds no others."""
        if isinstance(self.value, BaseModel):
            yield from (self.step(name, getattr(self.value, name)) for name in self.fields)
        elif isinstance(self.value, Mapping):
            yield from (self.step(key, each) for key, each in self.value.items())
        elif isinstance(self.value, list | tuple):
            yield from (self.step(number, each) for number, each in enumerate(self.value))
        elif self.value is _ABSENT and self.section is not None:
            yield from map(self.step, self.fields)
        elif self.value is _ABSENT and self._inner() is not None:
            yield self.step(ITEM if any(get_origin(each) is tuple for each in kinds(self.kind)) else NAME)

    def at(self, path: Sequence[str | int]) -> Place | None:
        """The place of a class at the end of ``path``; None where no section has a setting of the name."""
        place = self
        for part in path:
            if place.section is not None and part not in place.fields:
                return None
            place = place.step(part)
        return place

    def _inner(self) -> Any:
        """What a mapping has as values, or a list as items; None for anything else."""
        containers = {dict: 1, tuple: 0}
        found = ((get_origin(each), get_args(each)) for each in kinds(self.kind))
        return next((of[containers[origin]] for origin, of in found if origin in containers), None)


def kinds(annotation: Any) -> Iterator[Any]:
    """The types that an annotation allows, each member of a union by itself."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from kinds(get_args(annotation)[0])
    elif origin in {Union, UnionType}:
        for each in get_args(annotation):
            yield from kinds(each)
    else:
        yield annotation


def places(root: Place) -> Iterator[Place]:
    """All places below one, in their order, each before those in it."""
    for each in root.below():
        yield each
        yield from places(each)


def leaves(value: Any, kind: Any = None, *, whole: bool = False) -> Iterator[Place]:
    """The values that hold no others, or are empty, of settings or of the plain values that they are made of
    or were dumped to. With ``kind``, the class that plain values are for, each has what the class says of it.

    With ``whole`` lists and mappings are leaves: what is compared is a setting, and not what stands in it.
    """
    yield from _leaves(Place((), kind, None, value), whole)


def _leaves(place: Place, whole: bool) -> Iterator[Place]:
    below = () if whole and not isinstance(place.value, BaseModel) else tuple(place.below())
    if not below:
        yield place
    for each in below:
        yield from _leaves(each, whole)


def mapped(values: Any, change: Callable[[Place], Any], kind: Any = None) -> Any:
    """Plain values with each leaf as ``change`` makes it; ``kind`` as for ``leaves``."""
    return _mapped(Place((), kind, None, values), change)


def _mapped(place: Place, change: Callable[[Place], Any]) -> Any:
    if isinstance(place.value, Mapping):
        return {key: _mapped(each, change) for key, each in zip(place.value, place.below(), strict=True)}
    if isinstance(place.value, list | tuple):
        return [_mapped(each, change) for each in place.below()]
    return change(place)
