"""Moving the ledger in from another one, and its rows out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Access, Content, Operation, Types

if TYPE_CHECKING:
    from moorage.wire import imports
else:
    (imports,) = map(Types, ("imports",))

BEGIN_IMPORT = Operation(
    Access("PUT /v1/import", "admin"),
    Content(body=imports.ImportWanted, answer=imports.ImportShown),
    "Begin to import another ledger into this empty one, or resume the import.",
)
GET_IMPORT = Operation(
    Access("GET /v1/import", "reader"),
    Content(answer=imports.ImportShown),
    "Show the import that is under way.",
)
WRITE_IMPORTED_ROWS: Operation[None] = Operation(
    Access("POST /v1/import/rows", "admin"),
    Content(body=imports.RowsWanted, bulk=True),
    "Write and delete rows of the ledger that is imported, as they are.",
)
FINISH_IMPORT: Operation[None] = Operation(
    Access("POST /v1/import:finish", "admin"),
    Content(parameters=imports.FinishAsked),
    "End the import: from now on the ledger is used.",
)
ABORT_IMPORT: Operation[None] = Operation(
    Access("DELETE /v1/import", "admin"),
    Content(),
    "End the import, once all of its rows are deleted again.",
)
LIST_LEDGER_ROWS = Operation(
    Access("GET /v1/ledger-rows", "admin"),
    Content(parameters=imports.RowsAsked, answer=imports.LedgerRows),
    "List the rows of the ledger as they are kept, for an import or an export.",
)
