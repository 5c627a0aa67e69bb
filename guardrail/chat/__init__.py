"""Answers of chat APIs under guard: what a request says of its documents, and what becomes of each choice.

``guardrail.integrations`` of LiteLLM and agent-hooks, and ``consumers.gateway`` guard by this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.chat.answers import APART as APART
    from guardrail.chat.answers import BLOCK as BLOCK
    from guardrail.chat.answers import FAILED as FAILED
    from guardrail.chat.answers import TEXTS as TEXTS
    from guardrail.chat.answers import StreamedChoice as StreamedChoice
    from guardrail.chat.answers import StreamedCompletion as StreamedCompletion
    from guardrail.chat.answers import UpstreamFailed as UpstreamFailed
    from guardrail.chat.answers import WholeAnswer as WholeAnswer
    from guardrail.chat.answers import decide as decide
    from guardrail.chat.answers import parts_of as parts_of
    from guardrail.chat.requests import EXTENSION as EXTENSION
    from guardrail.chat.requests import ContextSource as ContextSource
    from guardrail.chat.requests import Grounding as Grounding
    from guardrail.chat.requests import GroundingExtension as GroundingExtension
    from guardrail.chat.requests import for_model as for_model
    from guardrail.chat.requests import grounding_of as grounding_of
    from guardrail.chat.requests import objects as objects
    from guardrail.chat.requests import taken_out as taken_out
    from guardrail.chat.requests import with_results as with_results

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
