"""Launches a run as Dagster's daemon does, and terminates it when its input ends.

`python -m tests.orchestrators.runs.dagster_launch POOL NAME HOW`
"""

import sys
from pathlib import Path

from dagster import DagsterInstance
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import PythonFileTarget

from tests.orchestrators.runs.with_dagster import installation, settings

if __name__ == "__main__":
    file = str(Path(__file__).with_name("with_dagster.py"))
    target = PythonFileTarget(file, "installation", str(Path.cwd()), "here")
    with (
        DagsterInstance.get() as instance,
        WorkspaceProcessContext(instance, target) as process,
    ):
        workspace = process.create_request_context()
        (location,) = workspace.code_locations
        (repository,) = location.get_repositories().values()
        origin = repository.get_full_job("installation").get_remote_origin()
        run = instance.create_run_for_job(
            installation,
            run_config=settings(*sys.argv[1:]),
            remote_job_origin=origin,
            job_code_origin=repository.get_full_job("installation").get_python_origin(),
        )
        instance.launch_run(run.run_id, workspace)
        sys.stdin.read()
        if not instance.run_launcher.terminate(run.run_id):
            sys.exit("the run was not terminated")
        location.cleanup()
