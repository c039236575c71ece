"""Starts an orchestrator by its name."""

from pathlib import Path

from tests.orchestrators.services.airflow import Airflow
from tests.orchestrators.services.dagster import Dagster
from tests.orchestrators.services.orchestrator import Orchestrator
from tests.orchestrators.services.prefect import Prefect

EVERY = {made.name: made for made in (Prefect, Dagster, Airflow)}


def orchestrator_of(name: str, home: Path, where: tuple[str, str]) -> Orchestrator:
    """Return an orchestrator that is not started yet."""
    return EVERY[name](home, where)
