"""Why no plan can be made."""


class PlanError(ValueError):
    """The ledger and what is wanted do not fit together; the message says where."""
