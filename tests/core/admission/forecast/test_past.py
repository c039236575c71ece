"""What a pool's leases say about its past, against a naive count."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.core.admission.forecast.simulate import PastLease, buckets_of, jobs_of

TIMES = st.integers(0, 60)


@st.composite
def past_leases(draw: st.DrawFn) -> PastLease:
    """Return a lease or ticket: it waits, is held, has ended, or was withdrawn."""
    asked, wait, hold = draw(TIMES), draw(st.integers(0, 20)), draw(st.integers(0, 20))
    state = draw(st.sampled_from(["waits", "held", "ended", "withdrawn"]))
    granted = asked + wait if state in {"held", "ended"} else None
    ended = {"ended": asked + wait + hold, "withdrawn": asked + wait}.get(state)
    return PastLease(asked, granted, ended, draw(st.integers(1, 3)), "me", 0)


def occupied_at(past: list[PastLease], at: float) -> int:
    """Return the units that are occupied at a time."""
    return sum(
        one.units
        for one in past
        if one.granted_at is not None
        and one.granted_at <= at
        and (one.ended_at is None or at < one.ended_at)
    )


def waiting_at(past: list[PastLease], at: float) -> int:
    """Return how many tickets wait at a time."""
    ends = [one.granted_at if one.granted_at is not None else one.ended_at for one in past]
    return sum(
        one.asked_at <= at and (end is None or at < end)
        for one, end in zip(past, ends, strict=True)
    )


@given(past=st.lists(past_leases(), max_size=12), count=st.integers(1, 9))
def test_buckets_have_the_extremes(past: list[PastLease], count: int) -> None:
    """Each bucket has the least and the most units, the most tickets, and all grants in it."""
    since, until = 10, 55
    buckets = buckets_of(past, since, until, count)
    bounds = [one.begins for one in buckets] + [until]
    assert bounds[0] == since
    for number, one in enumerate(buckets):
        begins, ends = bounds[number], bounds[number + 1]
        moments = range(begins, ends + 1)
        occupied = [occupied_at(past, at) for at in moments]
        assert (one.occupied_low, one.occupied_high) == (min(occupied), max(occupied))
        assert one.waiting == max(waiting_at(past, at) for at in moments)
        assert one.granted == sum(
            each.units
            for each in past
            if each.granted_at is not None and begins < each.granted_at <= ends
        )


@given(past=st.lists(past_leases(), max_size=12))
def test_jobs_are_the_leases_that_have_ended(past: list[PastLease]) -> None:
    """In the order of their requests, with the times that they really had."""
    jobs, stays = jobs_of(past)
    ended = [one for one in past if one.granted_at is not None and one.ended_at is not None]
    assert len(jobs) == len(stays) == len(ended)
    assert [job.arrives for job in jobs] == sorted(job.arrives for job in jobs)
    first = min((one.asked_at for one in ended), default=0)
    assert sorted((stay.arrived + first, stay.units) for stay in stays) == sorted(
        (one.asked_at, one.units) for one in ended
    )
    for job, stay in zip(jobs, stays, strict=True):
        assert stay.started is not None
        assert stay.ended is not None
        assert job.duration == max(1, stay.ended - stay.started)
