"""Refusals of the Placement API, and their codes.

Source: Placement API reference, "Errors"; OpenStack API working group, "Errors" guideline.
"""

UNDEFINED = "placement.undefined_code"
QUERY_DUPLICATE_KEY = "placement.query.duplicate_key"
QUERY_BAD_VALUE = "placement.query.bad_value"
QUERY_MISSING_VALUE = "placement.query.missing_value"


class ProblemError(Exception):
    """An error response of Placement.

    `headers` are added to the response, `members` to the JSON body. `subject` is the part of the
    request that the sentence of some statuses names; it is set when the answer is written.
    """

    subject = ""

    def __init__(
        self,
        status: int,
        detail: str,
        code: str = UNDEFINED,
        *,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        members: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = int(status)
        self.detail = detail
        self.code = code
        self.headers = headers
        self.members = members or {}
