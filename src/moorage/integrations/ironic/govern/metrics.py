"""The governor's metrics for Prometheus."""

from moorage.integrations.ironic.pass_metrics import NODES
from moorage.integrations.ironic.reconcile import Picture
from moorage.integrations.provisioning import pass_metrics


class GovernorMetrics(pass_metrics.GovernorMetrics[Picture]):
    """What a governor shows: its passes, and the nodes that wait."""

    def __init__(self) -> None:
        """Prepare to count."""
        super().__init__(NODES, Picture())
