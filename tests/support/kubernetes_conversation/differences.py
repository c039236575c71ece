"""How the double differs from a real API server, and why that stays."""

from tests.support.kubernetes_conversation.comparing import Known

KNOWN: tuple[Known, ...] = ()
