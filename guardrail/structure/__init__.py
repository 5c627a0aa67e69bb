"""What the layout of a text says: tables, blocks of fields and nested lists, as records with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.structure.forms import read_tables as read_tables
    from guardrail.structure.tables import Field as Field
    from guardrail.structure.tables import Table as Table
    from guardrail.structure.tables import TableRecord as TableRecord

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
