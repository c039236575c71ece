"""Who was busy when, as somebody sees it who looks at the nodes from outside."""

from dataclasses import dataclass, field

BUSY = {
    *("deploying", "wait call-back", "deleting", "cleaning", "clean wait", "inspecting"),
    "inspect wait",
}
DEPLOYING = {"deploying", "wait call-back"}


@dataclass(frozen=True)
class Line:
    """A node entered a state, at a second."""

    second: float
    node: str
    state: str


@dataclass
class Book:
    """All changes of the states of nodes, and the most of them that were ever busy at once."""

    lines: list[Line] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    most_busy: int = 0
    most_deploying: int = 0

    def note(self, second: float, node: str, state: str) -> None:
        """Note the state of a node, if it is a new one."""
        if self.states.get(node) == state:
            return
        self.states[node] = state
        self.lines.append(Line(second, node, state))
        self.most_busy = max(self.most_busy, len(self.among(BUSY)))
        self.most_deploying = max(self.most_deploying, len(self.among(DEPLOYING)))

    def among(self, states: set[str]) -> list[str]:
        """Return the nodes that are in one of these states."""
        return [node for node, state in self.states.items() if state in states]

    def times(self, node: str, state: str) -> int:
        """Return how often a node entered a state."""
        return sum((line.node, line.state) == (node, state) for line in self.lines)
