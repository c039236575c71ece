"""What a fuzzer sent, and what it learns from the answers."""

from dataclasses import dataclass
from typing import Any

from tests.e2e.support.peer import Answer


@dataclass(slots=True)
class Sent:
    """One request: its bytes, and what it is about."""

    method: str
    template: str
    provider: str
    consumer: str
    bytes: bytes

    @property
    def what(self) -> str:
        """The route."""
        return f"{self.method} {self.template}"


class Known:
    """What the answers have shown: which providers exist, and generations."""

    def __init__(self) -> None:
        self.providers: dict[str, int] = {}
        self.consumers: dict[str, int] = {}

    def learn(self, sent: Sent, answer: Answer) -> None:
        """Remember an answer; most writes only show that generations have changed."""
        match (sent.method, sent.template, answer.status):
            case ("POST", "/resource_providers", 200 | 201):
                self.providers[sent.provider] = 0
            case (_, "/resource_providers/{provider}", 404) | (
                "DELETE",
                "/resource_providers/{provider}",
                204,
            ):
                self.providers.pop(sent.provider, None)
            case ("PUT", "/allocations/{consumer}", 204):
                self.consumers[sent.consumer] = self.consumers.get(sent.consumer, 0) + 1
            case ("DELETE", "/allocations/{consumer}", 204):
                self.consumers.pop(sent.consumer, None)
            case (_, _, 200) if answer.body.startswith(b"{"):
                self._read(sent, answer.json())

    def _read(self, sent: Sent, seen: Any) -> None:
        if isinstance(generation := seen.get("resource_provider_generation"), int):
            self.providers[sent.provider] = generation
        if sent.template == "/allocations/{consumer}":
            if not seen["allocations"]:
                self.consumers.pop(sent.consumer, None)
            elif "consumer_generation" in seen:
                self.consumers[sent.consumer] = seen["consumer_generation"]
