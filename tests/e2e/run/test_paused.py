"""What `moorage run` does while its pool is paused, and what is known of those who gave up."""

from tests.e2e.support.carried import Harbour, eventually


def test_a_pause_stops_jobs_only_if_they_say_so(port: Harbour) -> None:
    """With --best-effort a job starts after its wait; with --unless-paused it fails with 124.

    The control: in a full pool that is not paused, such a job starts, and so it does if no server
    answers. Those that gave up are in the report, with the cause and the time.
    """
    pool = port.pool()
    run = ("run", "--pool", pool, "--wait", "300ms", "--best-effort")
    command = ("--", "echo", "started")
    port.admission.pool_pause(pool, "broken")
    assert port.finished(*run, *command).stdout == "started\n"
    refused = port.finished(*run, "--unless-paused", *command)
    assert (refused.returncode, refused.stdout) == (124, "")
    assert "paused" in refused.stderr and "broken" in refused.stderr
    always = port.finished(*run, "--best-effort-always", "--unless-paused", *command)
    assert (always.returncode, always.stdout) == (124, "")
    assert port.finished("run", "--pool", pool, "--wait", "300ms", *command).returncode == 124
    port.admission.pool_resume(pool)
    with port.started("run", "--pool", pool, "--", "cat"):
        eventually(lambda: port.leases(pool) or None)
        full = port.finished(*run, "--unless-paused", *command)
        assert full.stdout == "started\n"
    away = ("--unreachable-after", "100ms", "--unless-paused")
    gone = port.finished(*run, *away, *command, url="http://127.0.0.1:1")
    assert gone.stdout == "started\n"
    assert [one.cause for one in port.ended(pool)][:5] == ["gave_up"] * 5
    report = port.admission.pool_report(pool)
    assert (report.gave_up, report.causes["gave_up"]) == (5, 5)
    # A client waits from before its request on, so the server sees a little less than 300 ms.
    assert report.gave_up_after is not None and report.gave_up_after[0] >= 0.25
    assert report.leases <= 1
