"""The governor's metrics for Prometheus."""

from moorage.integrations.metal3.reconcile import WORDS, Picture
from moorage.integrations.provisioning import pass_metrics
from moorage.integrations.provisioning.pass_metrics import Names

HOSTS = Names(WORDS)


class GovernorMetrics(pass_metrics.GovernorMetrics[Picture]):
    """What a governor shows: its passes, and the hosts that wait."""

    def __init__(self) -> None:
        """Prepare to count."""
        super().__init__(HOSTS, Picture())
