"""Claims, explanations and bulk changes, in the words of `wire.ledger`."""

from dataclasses import asdict, fields

from moorage.client.decoding import decode
from moorage.client.transport import Transport
from moorage.wire.ledger import (
    Claim,
    ClaimWanted,
    Explained,
    ProviderOutcomes,
    ProvidersWanted,
    Question,
)


class Ledger:
    """The ledger of one server. Every call raises UnreachableError and RefusedError."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def claim(self, wanted: ClaimWanted) -> Claim:
        """Let the server choose, and allocate.

        Name the `consumer` yourself if you want to try again after UnreachableError: RefusedError
        with the code `consumer_generation` then means that the first try was carried out. The code
        `no_capacity` means that nothing has room; `explain` tells why.
        """
        return decode(Claim, self._transport.request("POST", "/v1/claims", asdict(wanted)))

    def explain(self, asked: Question) -> Explained:
        """Ask why nothing is found, for a question or for the one in a wish for a claim."""
        body = {field.name: asdict(asked)[field.name] for field in fields(Question)}
        return decode(Explained, self._transport.request("POST", "/v1/explain", body))

    def providers_upsert(self, wanted: ProvidersWanted) -> ProviderOutcomes:
        """Let providers be as described; repeating it is harmless."""
        told = self._transport.request("POST", "/v1/providers:bulk", asdict(wanted))
        return decode(ProviderOutcomes, told)
