"""What the layout of a text says: tables, blocks of fields and nested lists, as records with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.structure.forms import read_tables
    from guardrail.structure.tables import Field, Table, TableRecord

__all__ = ["Field", "Table", "TableRecord", "read_tables"]

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.structure.forms": ("read_tables",),
            "guardrail.structure.tables": ("Field", "TableRecord", "Table"),
        },
    )
