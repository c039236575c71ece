"""What every process that passes over Ironic's nodes shows to Prometheus, under the same names."""

from moorage.integrations.ironic.reconcile import WORDS, Picture
from moorage.integrations.provisioning import pass_metrics
from moorage.integrations.provisioning.pass_metrics import Names
from moorage.integrations.provisioning.rules import value_of

NODES = Names(WORDS, {"conductor": lambda node: value_of(node, "conductor") or ""})


class PassMetrics(pass_metrics.PassMetrics[Picture]):
    """What passes over nodes have seen and done."""

    def __init__(self) -> None:
        """Prepare to count."""
        super().__init__(NODES, Picture())
