"""The messages of a call: the instructions from ``prompts/``, and the data between fences.

The contexts' sentences are numbered, and a model names its evidence by these numbers. They run through all
contexts, from 1, and depend on nothing else, so they are the same in every call for a response. Whatever
number a model names, the quote is cut from the context itself.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from string import Template, ascii_lowercase
from typing import Any, Final

from pydantic import TypeAdapter

from guardrail.claims.model import Claim
from guardrail.events import Context, Evidence, Severity, Verdict
from guardrail.evidence.index import EvidenceIndex, Passage
from guardrail.evidence.sentences import sentence_spans
from guardrail.judges.base import JudgeRequest
from guardrail.judges.llm.reply import Answer, ReplyForm, write_reply
from guardrail.judges.llm.settings import Example, ExampleClaim, LlmJudgeSettings, PromptFiles, PromptName
from guardrail.shipped import shipped_text, shipped_yaml

MAX_SENTENCE_CHARS: Final = 600
"""Longer ones (a text without punctuation) are cut at a blank where there is one."""

_CODE_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_RULE: Final = re.compile(r"[-=_*#|`~:+.>\s]*+")
# What looks like one of our numbers, even if blanks or invisible characters hide it.
_NUMBER_LIKE: Final = re.compile(r"\[(?=[\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff]{0,4}\d)")


class Sentences:
    """The sentences of ``contexts``: prose by the sentence, lists, tables and code by the line.

    Creating it is CPU work, one linear pass over the texts.
    """

    __slots__ = ("_context", "_end", "_first", "_start", "contexts")

    def __init__(self, contexts: Sequence[Context]) -> None:
        self.contexts = contexts
        self._context, self._start, self._end = array("I"), array("I"), array("I")
        self._first = array("I")  # of each context, the number of its first sentence
        for position, context in enumerate(contexts):
            self._first.append(len(self._start) + 1)
            for start, end in _spans(context.text):
                if _RULE.fullmatch(context.text, start, end):
                    continue  # a separator without content
                self._context.append(position)
                self._start.append(start)
                self._end.append(end)

    def __len__(self) -> int:
        return len(self._start)

    def of_context(self, position: int) -> range:
        """The numbers of the sentences of the context at ``position``."""
        last = position + 1 == len(self._first)
        return range(self._first[position], len(self) + 1 if last else self._first[position + 1])

    def overlapping(self, position: int, start: int, end: int) -> range:
        """The numbers of that context's sentences that overlap ``[start, end)``."""
        numbers = self.of_context(position)
        low, high = numbers.start - 1, numbers.stop - 1
        return range(
            bisect_right(self._end, start, low, high) + 1, bisect_left(self._start, end, low, high) + 1
        )

    def text(self, number: int) -> str:
        """A sentence as written in its context."""
        at = number - 1
        return self.contexts[self._context[at]].text[self._start[at] : self._end[at]]

    def line(self, number: int) -> str:
        """A sentence as a line of the prompt, ``[12] …``. Only our own numbers can begin a line like this."""
        return f"[{number}] {defuse_numbers(' '.join(self.text(number).split()))}"

    def position(self, number: int) -> int:
        """The position of a sentence's context among the contexts."""
        return self._context[number - 1]

    def evidence(self, numbers: Sequence[int]) -> tuple[Evidence, ...]:
        """The quotes for the existing ones of ``numbers``, in text order, with neighbours joined."""
        joined: list[tuple[int, int]] = []
        for number in sorted(set(numbers)):
            first, last = joined[-1] if joined else (0, 0)
            if joined and number == last + 1 and self.position(number) == self.position(first):
                joined[-1] = (first, number)
            else:
                joined.append((number, number))
        return tuple(self._quote(first, last) for first, last in joined)

    def _quote(self, first: int, last: int) -> Evidence:
        context = self.contexts[self.position(first)]
        span = (self._start[first - 1], self._end[last - 1])
        return Evidence(context_id=context.id, quote=context.text[span[0] : span[1]], span=span)


def defuse_numbers(text: str) -> str:
    """``text`` changed so that nothing in it can be mistaken for a sentence's number."""
    return _NUMBER_LIKE.sub("［", text)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    for start, end, code in _regions(text):
        if code:
            spans = list(_lines(text, start, end))
        else:
            starts, ends = sentence_spans(text[start:end])
            spans = [(start + a, start + b) for a, b in zip(starts, ends, strict=True)]
        for begin, stop in spans:
            yield from _cut(text, begin, stop)


def _regions(text: str) -> Iterator[tuple[int, int, bool]]:
    """The pieces of ``text`` and whether each is code; Markdown's code fences count as code."""
    begin, code = 0, False
    for fence in _CODE_FENCE.finditer(text):
        if code:
            line_end = text.find("\n", fence.end())
            stop = len(text) if line_end < 0 else line_end
        else:
            stop = fence.start()
        yield begin, stop, code
        begin, code = stop, not code
    yield begin, len(text), code


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        found = text.find("\n", start, end)
        stop = end if found < 0 else found
        line = text[start:stop]
        if line.strip():
            yield start + len(line) - len(line.lstrip()), start + len(line.rstrip())
        start = stop + 1


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > MAX_SENTENCE_CHARS:
        at = text.rfind(" ", start + MAX_SENTENCE_CHARS // 2, start + MAX_SENTENCE_CHARS)
        stop = at if at > start else start + MAX_SENTENCE_CHARS
        yield start, stop
        start = stop + (stop == at)
    if start < end:
        yield start, end


_PASSAGES_PER_CLAIM: Final = 6  # at most, where the contexts are not sent whole
_PASSAGES_OF_A_SECOND_LOOK: Final = 24  # a claim

# -------------------------------------------------------------------------------------------------- the fence

# Decimal, because common tokenizers make one token of three decimal digits, but of two hexadecimal ones, and
# a marker stands in every call some ten times. 15 digits are 50 bits, and a forger has one guess.
_MARKER_DIGITS: Final = 15

# The tokens by which chat templates separate roles. Servers that tokenise the filled-in template (vLLM,
# llama.cpp, TGI) read them as control tokens even within a message. Covered are <|im_start|> and all of its
# shape (also DeepSeek's with the full-width bar, EXAONE's with square brackets), the words of Llama, Mistral,
# Gemma, Qwen, Command R, GLM, Kimi, MiniMax, Baichuan, InternLM, Nemotron, Seed and of models for code and
# pictures, and, for models to come, names with _ or : in angle brackets. Every branch begins with a literal,
# so that the scan passes over all other characters quickly.
_ANGLED: Final = (
    r"s|bos|eos|pad|unk|cls|sep|mask|sop|eop|eoh|eoa|eod|eot"
    r"|start_of_turn|end_of_turn|start_of_image|end_of_image|unused\d{1,4}|reserved_\d{1,4}"
    r"|think|thinking|tool_call|tool_calls|tool_response|tools|function|functions"
    r"|[be]os_token|pad_token|unk_token|extra_id_\d{1,4}|special_\d{1,4}|seed:\w{1,20}"
    r"|__media__|image|video|audio|img|img_context|fim_\w{1,20}|file_sep|repo_name|reponame|filename"
)
_SQUARE: Final = (
    r"INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|THINK|ARGS|CALL_ID"
    r"|IMG|IMG_BREAK|IMG_END|gMASK|sMASK|MASK|BOS|EOS|EOT|PAD|UNK|CLS|SEP"
)
_CONTROL: Final = re.compile(
    r"<(?=[|｜])"
    r"|>(?<=[|｜]>)"
    rf"|<(?=/?(?i:{_ANGLED})>)"
    r"|<(?=</?(?i:SYS)>>)"
    rf"|\[(?=/?(?i:{_SQUARE})\])"
    r"|<(?=/?[A-Za-z][A-Za-z0-9]{0,20}[_:][A-Za-z0-9_:]{1,40}>)"
    r"|\[(?=\|)|\](?<=\|\])"
    r"|\[(?=e~\[)|\](?=~!?b[\[\]])"
)
_STAND_IN: Final = {"<": "‹", ">": "›", "[": "［", "]": "］"}


class Fence:
    """Puts data of one response between marker lines that the data can't forge.

    Each text stands behind a line with the marker and its name, and runs to the next marker line, which for
    the last text of a group says ``end``.

    The marker is an HMAC of the response's id under a secret that this process drew at start. It is the same
    in all calls of one response, so that a provider's prefix cache works, and nobody outside can know it: not
    the author of a context or a question, nor the model that wrote the answer.
    """

    __slots__ = ("_forbidden", "marker")

    def __init__(self, marker: str) -> None:
        self.marker = marker
        self._forbidden = re.compile(re.escape(marker), re.IGNORECASE)

    def named(self, name: str, data: str) -> str:
        """``data`` behind a marker line. ``name`` must be one of ours, never taken from data."""
        return f"[{self.marker} {name}]\n{self.defuse(data)}"

    def group(self, texts: Iterable[str]) -> str:
        """Texts made by ``named``, one behind the other, closed."""
        return "\n".join([*texts, f"[{self.marker} end]"])

    def defuse(self, data: str) -> str:
        """``data`` without control tokens and without the marker (which it could only contain if that had
        leaked).

        Lone surrogates, which JSON can't carry, become question marks. Linear in the length.
        """
        data = data.encode("utf-8", "replace").decode("utf-8")
        if self._forbidden.search(data):
            data = self._forbidden.sub("…", data)
        return _CONTROL.sub(lambda match: _STAND_IN[match[0]], data)

    def scrub(self, reply: str) -> str:
        """The model's text as others may read it, without the marker, and in characters that UTF-8 has."""
        return self._forbidden.sub("…", reply).encode("utf-8", "replace").decode()


def fences(secret: bytes | None = None) -> Callable[[str], Fence]:
    """A function from the id of a response to its fence. Without ``secret`` it draws one."""
    key = secret or secrets.token_bytes(32)

    def fence(response_id: str) -> Fence:
        digest = hmac.new(key, response_id.encode("utf-8", "surrogatepass"), hashlib.sha256)
        number = int.from_bytes(digest.digest()) % 10**_MARKER_DIGITS
        return Fence(f"m{number:0{_MARKER_DIGITS}}")

    return fence


# ---------------------------------------------------------------------------------- which sentences are shown


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece of a context as it goes into the prompt: numbered lines. ``label`` is d1, d2, …"""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class ShownSentences:
    """The ``numbers`` of the sentences that are shown; ``partial`` if they are not all.

    ``uncovered`` has the ids of claims that can't be judged, because no passage for them fitted.
    """

    shown: tuple[Shown, ...]
    numbers: Collection[int]
    partial: bool = False
    uncovered: frozenset[str] = frozenset()


def select(
    index: EvidenceIndex,
    sentences: Sentences,
    claims: dict[str, Claim],
    max_chars: int,
    per_claim: int = _PASSAGES_PER_CLAIM,
    *,
    excerpts: bool = False,
) -> ShownSentences:
    """All sentences, or those of the best passages if the text with its numbers exceeds ``max_chars``, or if
    ``excerpts`` are asked for.

    All sentences are the same text in every call of a response, which a provider's prefix cache can serve.
    """
    if not excerpts and sum(len(context.text) for context in index.contexts) <= max_chars:
        lines = {number: sentences.line(number) for number in range(1, len(sentences) + 1)}
        if sum(len(line) + 1 for line in lines.values()) <= max_chars:
            return ShownSentences(tuple(_pieces(sentences, lines)), range(1, len(sentences) + 1))
    return _closest(index, sentences, claims, max_chars, per_claim)


def _pieces(sentences: Sentences, lines: dict[int, str]) -> Iterable[Shown]:
    """The lines, in contiguous runs. A context has the same label whether or not others are shown."""
    run: list[str] = []
    last = 0
    for number, line in sorted(lines.items()):
        if run and (number != last + 1 or sentences.position(number) != sentences.position(last)):
            yield Shown(f"d{sentences.position(last) + 1}", "\n".join(run))
            run = []
        run.append(line)
        last = number
    if run:
        yield Shown(f"d{sentences.position(last) + 1}", "\n".join(run))


def _closest(
    index: EvidenceIndex, sentences: Sentences, claims: dict[str, Claim], max_chars: int, per_claim: int
) -> ShownSentences:
    """The best passage of every claim, then the second best, and so on, as long as they fit."""
    # If contexts share an id, the first one counts.
    positions = {context.id: at for at, context in reversed(list(enumerate(index.contexts)))}
    ranked = {claim_id: closest_passages(index, claim, per_claim) for claim_id, claim in claims.items()}
    chosen: dict[int, str] = {}
    told: set[str] = set()  # texts of passages, each of which is shown once
    left = max_chars

    def take(passage: Passage) -> bool:
        nonlocal left
        if passage.text in told:
            return True
        numbers = sentences.overlapping(positions[passage.context_id], passage.start, passage.end)
        lines = {number: sentences.line(number) for number in numbers if number not in chosen}
        size = sum(len(line) + 1 for line in lines.values())
        if size > left:
            return False
        told.add(passage.text)
        chosen.update(lines)
        left -= size
        return True

    covered = set()
    for row in zip_longest(*ranked.values()):
        for claim_id, passage in zip(ranked, row, strict=True):
            if passage is not None and take(passage):
                covered.add(claim_id)
    nothing_found = {claim_id for claim_id, passages in ranked.items() if not passages}
    if nothing_found:
        # A claim that shares no word with any context, perhaps because it is in another language, is judged
        # by as much of the contexts as fits.
        for passage in index.passages:
            if take(passage):
                covered |= nothing_found
    return ShownSentences(
        tuple(_pieces(sentences, chosen)),
        frozenset(chosen),
        partial=len(chosen) < len(sentences),
        uncovered=frozenset(claims.keys() - covered),
    )


def closest_passages(index: EvidenceIndex, claim: Claim, k: int) -> Sequence[Passage]:
    """The passages closest to the claim, and to the claim with its lead-in, which may say what "it" is.

    Those in contexts that the claim cites come first.
    """
    cited = frozenset(by for citation in claim.citations for by in citation.context_ids)
    own = index.search(claim.prose.text, k, first=cited)
    if not claim.lead_in:
        return own
    wider = index.search(f"{claim.lead_in} {claim.prose.text}", k, first=cited)
    mixed = {
        (passage.context_id, passage.start): passage
        for pair in zip_longest(own, wider)
        for passage in pair
        if passage is not None
    }
    return list(mixed.values())[:k]


# -------------------------------------------------------------------------------------------------- the words


@cache
def _rules() -> dict[str, Any]:
    """The rules that the settings select, by name."""
    loaded: dict[str, Any] = shipped_yaml("guardrail.judges.llm", "prompts", "rules.yaml")
    return loaded


@cache
def default_examples() -> tuple[Example, ...]:
    """The package's examples."""
    return TypeAdapter(tuple[Example, ...]).validate_python(
        shipped_yaml("guardrail.judges.llm", "prompts", "examples.yaml")
    )


def template(name: PromptName, chosen: PromptFiles) -> Template:
    """The prompt to use. Raises ConfigError as ``PromptFiles.own`` does."""
    own: Template | None = chosen.own(name)
    return own or Template(shipped_text("guardrail.judges.llm", "prompts", f"{name}.md").strip())


def render(examples: Sequence[Example], form: ReplyForm) -> str:
    """The examples as text for the instructions, with replies in ``form``."""
    return "\n\n".join(_rendered(example, form) for example in examples)


def _rendered(example: Example, form: ReplyForm) -> str:
    lines = ["Document:", *(f"[{number}] {text}" for number, text in enumerate(example.sentences, 1))]
    if example.question:
        lines += ["Question:", example.question]
    claims = {f"c{number}": claim for number, claim in enumerate(example.claims, 1)}
    lines += ["Claims:", *(f"{label}: {claim.text}" for label, claim in claims.items())]
    said = [answer for label, claim in claims.items() for answer in _answers(label, claim, form)]
    return "\n".join([*lines, "Reply:", write_reply(said)])


def _answers(label: str, claim: ExampleClaim, form: ReplyForm) -> Iterator[Answer]:
    """What is said of a claim in ``form``."""
    if form.decompose:
        for letter, part in zip(ascii_lowercase, claim.parts, strict=False):
            yield Answer(f"{label}{letter}", Verdict(part.verdict), 1.0, part.evidence, reasoning=part.text)
    verdict = Verdict(claim.verdict)
    reason = claim.reasoning if form.reasons and verdict is not Verdict.SUPPORTED else ""
    yield Answer(label, verdict, claim.confidence, claim.evidence, claim.against, reason)


def _reply_form(form: ReplyForm) -> str:
    """The form of a reply, and what stands where in it."""
    rules = _rules()["reply"]
    statements = [rules["statements"]] if form.decompose else []
    return "\n".join(
        [form.example(), rules["texts"], rules["reasons" if form.reasons else "no_reasons"], *statements]
    )


# ----------------------------------------------------------------------------------------------- the messages


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of one call, and the meaning of their short ids and numbers.

    ``claim_ids`` maps the short ids of the claims asked for. ``shown`` has the numbers of ``sentences`` that
    are in the messages; ``partial`` if not all are. ``uncovered`` claims could not be asked for.
    """

    messages: tuple[dict[str, str], ...]
    claim_ids: dict[str, str]
    sentences: Sentences
    shown: Collection[int]
    fence: Fence
    partial: bool
    uncovered: frozenset[str]


class Prompts:
    """Makes the messages of calls. Parts that are the same in all calls are made once."""

    __slots__ = ("_data", "_fixed", "_instructions", "_settings", "form", "schema")

    def __init__(self, settings: LlmJudgeSettings) -> None:
        """Raises ConfigError if a custom prompt has become unreadable."""
        self._settings = settings
        self.form = ReplyForm(settings.reasoning != "none", settings.decompose)
        self.schema = self.form.schema()
        own = settings.prompts.own("examples")
        examples = default_examples() if own is None else own
        self._fixed = {
            "verdict_rules": _rules()["verdicts"],
            "reply_form": _reply_form(self.form),
            "examples": f"{_rules()['examples']}\n{render(examples, self.form)}\n" if examples else "",
        }
        self._instructions = template("system", settings.prompts)
        self._data = template("user", settings.prompts)

    def build(
        self,
        request: JudgeRequest,
        fence: Fence,
        only: Container[str] | None = None,
        *,
        second_look: bool = False,
    ) -> Prompt:
        """The messages for ``request``, or for those of its claims with an id in ``only``.

        Of long contexts with the passages closest to the claims; for a ``second_look`` with more of them.

        This is CPU work (search, passes over everything sent), so call it off the event loop. What changes
        least comes first: instructions and examples, marker, documents, question, claims. Calls for the same
        response are alike up to the claims, as long as its documents fit. A claim has the same short id with
        and without ``only``.
        """
        settings = self._settings
        sentences = request.evidence.kept(Sentences, lambda: Sentences(request.evidence.contexts))
        # The same in all calls of a response: only what repeats is served from a provider's cache.
        long = sum(len(context.text) for context in sentences.contexts) > settings.whole_context_chars
        claims = request.claims
        if second_look and only is not None:
            claims = {claim_id: claim for claim_id, claim in claims.items() if claim_id in only}
        selection = select(
            request.evidence,
            sentences,
            claims,
            settings.max_context_chars,
            _PASSAGES_OF_A_SECOND_LOOK if second_look else _PASSAGES_PER_CLAIM,
            excerpts=long,
        )
        claim_ids = {
            f"c{number}": claim_id
            for number, claim_id in enumerate(request.claims, 1)
            if claim_id not in selection.uncovered and (only is None or claim_id in only)
        }
        instructions = self._instructions.substitute(self._fixed, marker=fence.marker)
        data = self._data.substitute(
            notice=f"{_rules()['notice']}\n\n" if selection.partial else "",
            documents=_documents(selection, fence),
            question=fence.group([_named(fence, "question", request.question)]),
            claims=_claims(request, claim_ids, fence),
            asked=", ".join(claim_ids),
        )
        return Prompt(
            ({"role": "system", "content": instructions}, {"role": "user", "content": data}),
            claim_ids,
            sentences,
            selection.numbers,
            fence,
            selection.partial,
            selection.uncovered,
        )


def _documents(selection: ShownSentences, fence: Fence) -> str:
    noun = "excerpt of document" if selection.partial else "document"
    # The lines are numbered, and anything that looked like a number in their texts has already been defused.
    return fence.group(fence.named(f"{noun} {shown.label}", shown.text) for shown in selection.shown)


def _claims(request: JudgeRequest, claim_ids: dict[str, str], fence: Fence) -> str:
    parts = []
    for label, claim_id in claim_ids.items():
        claim = request.claims[claim_id]
        if claim.lead_in:
            parts.append(_named(fence, f"lead-in of {label}", claim.lead_in))
        parts.append(_named(fence, f"claim {label}", claim.prose.text))
    return fence.group(parts)


def _named(fence: Fence, name: str, data: str) -> str:
    return fence.named(name, defuse_numbers(data))


# ---------------------------------------------------------------------------- a small request, to show it all

_SAMPLE_MARKER: Final = "m012345678901234"
_SAMPLE_CONTEXTS: Final = (
    "The basic plan costs $49 a month. Refunds are paid within 14 days of the cancellation.",
    "| Plan | Users |\n|------|-------|\n| Basic | 3 |",
)
_SAMPLE_CLAIMS: Final = (
    ("The basic plan costs $49 a month.", ""),
    ("It includes 5 users.", "The basic plan:"),
)


def sample() -> tuple[JudgeRequest, Fence]:
    """Two claims on two contexts, and a fence with a fixed marker; never send it to a model."""
    claims = {
        f"claim-{number}": Claim(number, number, text, 0, len(text), Severity.NORMAL, lead_in=lead_in)
        for number, (text, lead_in) in enumerate(_SAMPLE_CLAIMS)
    }
    contexts = [Context(id=f"context-{number}", text=text) for number, text in enumerate(_SAMPLE_CONTEXTS)]
    request = JudgeRequest("sample", "What is in the basic plan?", claims, EvidenceIndex(contexts), math.inf)
    return request, Fence(_SAMPLE_MARKER)
