"""What the readers of formats pass on: rows as they stand in a file, the words for what is wrong with them,
and their values as texts, contexts and labels of ours.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from pydantic import ValidationError
from pydantic_core import from_json

from guardrail.errors import DecodeError
from guardrail.events import KNOWN_WORDS, Context, Label, LabelSource, verdict_said
from guardrail.printable import escape_controls, shorten
from guardrail.render import counted

Format = Literal[
    "auto", "guardrail", "ragas", "deepeval", "haystack", "promptfoo", "ragtruth", "openinference", "langfuse"
]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One record of a file: its fields, or the problem why it has none."""

    place: str
    fields: Fields = field(default_factory=dict)
    problem: str = ""

    @property
    def name(self) -> str:
        """The id of an answer that has none."""
        return self.place.replace(" ", "-")


_KINDS: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


def kind_of(value: Any) -> str:
    """What a value is, in the words of JSON; never the value itself."""
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def named(names: object) -> str:
    """A name from a file, fit for a message."""
    return repr(shorten(escape_controls(str(names)), 40))


def wrong(field: str, value: Any, remedy: str) -> DecodeError:
    """The error of a field whose value is of the wrong kind."""
    return DecodeError("invalid_sample", f"{field}: {kind_of(value)}; {remedy}")


def missing(field: str, remedy: str) -> DecodeError:
    """The error of a field that is not there."""
    return DecodeError("invalid_sample", f"{field}: missing; {remedy}")


# ---------------------------------------------------------------------------------- texts and contexts

_TEXT_NAMES: Final = (
    "text",
    "content",
    "page_content",
    "pageContent",
    "context",
    "document",
    "body",
    "chunk",
)
_ID_NAMES: Final = ("id", "context_id", "document_id", "doc_id", "chunk_id", "documentId")
_SOURCE_NAMES: Final = ("source", "url", "uri", "title", "file_name", "filename")
CONTEXTS_REMEDY: Final = "give a list of texts, or of objects with id and text"
_BEGUN: Final = ("['", '["', "[{")
_STRING: Final = re.compile(r"'(?:[^'\\]|\\.)*(?:'|\\?\Z)" + r'|"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.DOTALL)
_PRINTED: Final = ("Document(id=", "Document(metadata=", "NodeWithScore(node=", "TextNode(id_=")
_NEXT_PRINTED: Final = re.compile(r"(?<=\)), (?=Document\(id=)")
_AFTER_PRINTED: Final = re.compile(r"'(?:, (?:blob|meta|score|embedding|sparse_embedding): |\)\Z)")
_DEEPEVAL_MARK: Final = ("deepeval_source=", ",deepeval_context=")


def first_of(fields: Fields, names: Iterable[str]) -> tuple[str, Any]:
    """The first of ``names`` that has a value, and the value; "" and None without any."""
    for name in names:
        if fields.get(name) is not None:
            return name, fields[name]
    return "", None


def text_of(fields: Fields, names: tuple[str, ...], *, required: bool = True) -> str:
    """The text under the first of ``names``. Raises DecodeError."""
    name, value = first_of(fields, names)
    if value is None:
        if required:
            raise missing(" or ".join(names), "give a text")
        return ""
    if not isinstance(value, str):
        raise wrong(name, value, "give a text")
    return value


def read_json(text: str | bytes) -> Any:
    """The value that ``text`` is the JSON of, else None."""
    try:
        return from_json(text)
    except ValueError:
        return None


def unpacked(value: Any) -> Any:
    """``value``, or what it is the JSON of: exports to tables hold objects and lists as texts."""
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "["}:
        found = read_json(value)
        return value if found is None else found
    return value


def list_in(text: str) -> list[Any] | None:
    """The list that a cell holds: as JSON, or as Python prints it, as Ragas and Haystack do; else None."""
    text = text.strip()
    if not text.startswith("["):
        return None
    found = read_json(text)
    if found is None:
        try:
            found = ast.literal_eval(text)
            if not _STRING.sub("", text).strip("[] \n"):  # NumPy's, whose texts Python joins
                found = [ast.literal_eval(each) for each in _STRING.findall(text)]
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return _NEXT_PRINTED.split(text[1:-1]) if text.startswith(_PRINTED, 1) else None
    return found if isinstance(found, list) else None


def contexts_of(
    fields: Fields, names: tuple[str, ...], ids: Any = None, *, delimiter: str | None = None
) -> list[Context]:
    """The contexts under the first of ``names``: a list, or a text that holds one.

    ``ids`` are their ids in the same order, if the format keeps them apart. A text that holds no list is cut
    at ``delimiter``, else it is one context. Raises DecodeError.
    """
    name, value = first_of(fields, names)
    if value is None:
        raise missing(" or ".join(names), CONTEXTS_REMEDY)
    if isinstance(value, str):
        found = list_in(value)
        if found is None:
            if value.lstrip().startswith(_BEGUN):
                raise wrong(name, value, "it begins as a list and is none, so it may be cut; give JSON")
            found = value.split(delimiter) if delimiter else [value]
        value = [each for each in found if each != ""]
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise wrong(name, value, CONTEXTS_REMEDY)
    ids = list_in(ids) if isinstance(ids, str) else ids
    given = ids if isinstance(ids, (list, tuple)) and len(ids) == len(value) else [None] * len(value)
    return distinct(
        context_of(each, given[at], f"c{at + 1}", f"{name}.{at}") for at, each in enumerate(value)
    )


def distinct(contexts: Iterable[Context]) -> list[Context]:
    """The same, where an id stands once: other tools let a document be retrieved twice."""
    found: list[Context] = []
    seen: dict[str, int] = {}
    for context in contexts:
        times = seen[context.id] = seen.get(context.id, 0) + 1
        found.append(context if times == 1 else context.model_copy(update={"id": f"{context.id}#{times}"}))
    return found


def context_of(value: Any, given_id: Any, default_id: str, place: str) -> Context:
    """One context from a text, or an object as LangChain, Haystack, LlamaIndex and others write it."""
    if isinstance(value, str) and value.startswith(_PRINTED):
        value = _unprinted(value, place)
    if isinstance(value, str):
        source, text = _marked(value)
        return Context(id=_id(given_id) or default_id, text=text, source=source)
    if not isinstance(value, Mapping):
        raise wrong(place, value, CONTEXTS_REMEDY)
    for inner in ("node", "document"):  # a document in what says how well it was found
        if isinstance(value.get(inner), Mapping):
            value = {**value, **value[inner]}
    name, text = first_of(value, _TEXT_NAMES)
    if not isinstance(text, str):
        if text is None:
            raise missing(f"{place}.text", CONTEXTS_REMEDY)
        raise wrong(f"{place}.{name}", text, "give a text")
    meta: Fields = next(
        (value[key] for key in ("metadata", "meta") if isinstance(value.get(key), Mapping)), {}
    )
    source = first_of(value, _SOURCE_NAMES)[1] or first_of(meta, _SOURCE_NAMES)[1]
    score = value.get("score")
    return Context(
        id=_id(given_id) or _id(first_of(value, _ID_NAMES)[1]) or default_id,
        text=text,
        source=source if isinstance(source, str) else None,
        score=float(score) if isinstance(score, (int, float)) and not isinstance(score, bool) else None,
    )


def _unprinted(text: str, place: str) -> Fields:
    """Haystack's document as printed, nothing escaped. Raises DecodeError if it is cut or its end unclear."""
    document_id, content, rest = text.removeprefix(_PRINTED[0]).partition(", content: '")
    rest, *after = _AFTER_PRINTED.split(rest)
    # It cuts at 100 characters; what other libraries print says more than the text.
    if not content or len(after) != 1 or rest[100:] == "...":
        raise wrong(place, text, "a printed document can't be read whole; give the documents' texts")
    return {"id": document_id, "content": rest}


def _marked(text: str) -> tuple[str | None, str]:
    """Source and text of a context that DeepEval wrote with its source in front."""
    start, middle = _DEEPEVAL_MARK
    if text.startswith(start) and middle in text:
        source, _, rest = text.removeprefix(start).partition(middle)
        return source, rest
    return None, text


def _id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return ""
    return str(value)[:512]


# ------------------------------------------------------------------------------------------- labels

_FAITHFUL: Final = ("faithful", "is_faithful", "faithfulness_label", "human_faithful", "human_faithfulness")
_LABELS: Final = ("human_label", "label", *_FAITHFUL)
_UNFAITHFUL: Final = ("hallucination", "hallucinated", "is_hallucination", "human_hallucination")
_MOST_TOLD: Final = 5
_NUMBER: Final = re.compile(r"\.\d+$")
Unread = tuple[str, str]
"""The field of a value that should be a label and says nothing of right and wrong, and the value, fit for a
message.
"""


def labels_of(fields: Fields, response_id: str) -> tuple[tuple[Label, ...], tuple[Unread, ...]]:
    """What people say of the answer in columns of its own row, and what of that could not be read.

    ``labels`` are label events, whose id of the response may be missing, or words. A column of one word is
    about the whole answer: label, human_label, faithful, …, or hallucination and the like, where yes says
    that it is wrong. Raises DecodeError for a label event that is none.
    """
    found: list[Label] = []
    unread: list[Unread] = []

    def word(field: str, value: Any, source: LabelSource, *, of_error: bool = False) -> None:
        verdict = verdict_said(value, of_error=of_error)
        if verdict is None:
            unread.append((field, named(as_text(value))))
        else:
            found.append(
                Label(response_id=response_id, verdict=verdict, source=source, id=f"{response_id}:{field}")
            )

    given = unpacked(fields.get("labels"))
    listed = given if isinstance(given, list) else [] if given is None or given == "" else [given]
    for at, each in enumerate(listed):
        where = f"labels.{at}"
        if isinstance(each, Mapping):
            found.append(_label({"response_id": response_id, **each}, where))
        else:
            word(where, each, LabelSource.HUMAN)
    for names, of_error in ((_LABELS, False), (_UNFAITHFUL, True)):
        for name in names:
            value = fields.get(name)
            if value is not None and value != "" and value == value:  # NaN: an empty cell
                source = LabelSource.HUMAN if "human" in name else LabelSource.DATASET
                word(name, value, source, of_error=of_error)
    return tuple(found), tuple(unread)


def unread_messages(unread: Mapping[Unread, int]) -> list[str]:
    """What is said of values that are no labels, a line a field: how many, which, and what is known."""
    fields: dict[str, Counter[str]] = {}
    for (name, value), count in unread.items():
        fields.setdefault(_NUMBER.sub("", name), Counter())[value] += count
    lines = []
    for name, values in fields.items():
        shown = ", ".join(f"{value} ({count:,})" for value, count in values.most_common(_MOST_TOLD))
        more = f" and {len(values) - _MOST_TOLD:,} others" if len(values) > _MOST_TOLD else ""
        lines.append(
            f"{named(name)}: {counted(values.total(), 'value')} not read, which "
            f"would be labels if they said right or wrong: {shown}{more}; known are {KNOWN_WORDS}"
        )
    return lines


def _label(fields: Fields, place: str) -> Label:
    try:
        return Label.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join([place, *map(str, first["loc"])])
        raise DecodeError("invalid_sample", f"{where}: {first['msg']}; give a label event") from None


def as_text(value: Any) -> str | None:
    """A text, or any other value as JSON; None for nothing."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
