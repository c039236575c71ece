"""One row that nobody can read keeps nobody else from ending, or from being next."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from moorage.core.admission.model import SECOND, Pacing
from moorage.service.sweeper import FaultyError
from tests.service.pools import MINUTE, ask, by_hand, later, spec
from tests.service.running import TESTER, Running


def test_a_sweep_passes_over_what_is_broken(tmp_path: Path) -> None:
    """What is due beside it ends all the same, pools are woken, and the broken one is named."""

    async def scene(one: Running) -> None:
        admission = one.service.admission
        await admission.pool_put("p", spec(3), None, TESTER)
        paced = Pacing(interval=60 * SECOND, burst=1, jitter=0)
        await admission.pool_put("paced", spec(2, pacing=paced), None, TESTER)
        broken, *others = [(await ask(admission, str(n), "p")).lease.id for n in range(3)]
        await ask(admission, "first", "paced")
        second = (await ask(admission, "second", "paced", patience=5 * MINUTE)).lease.id
        with closing(apsw.Connection(str(tmp_path / "m.sqlite"))) as rows:
            good = rows.execute("SELECT body FROM lease WHERE id = ?", (broken,)).get
            rows.execute("UPDATE lease SET body = '{}' WHERE id = ?", (broken,))

        await later(one, 58 * SECOND)
        assert (await admission.lease(second)).lease.state == "waiting"
        one.clock.at += 3 * SECOND
        with pytest.raises(FaultyError, match=f"1 leases and pools cannot be swept: {broken}"):
            await admission.sweeper.sweep()
        for lease in others:
            assert (await admission.lease(lease)).lease.cause == "ttl_over"
        assert (await admission.lease(second)).lease.state == "granted"

        with closing(apsw.Connection(str(tmp_path / "m.sqlite"))) as rows:
            rows.execute("UPDATE lease SET body = ? WHERE id = ?", (good, broken))
        await admission.sweeper.sweep()
        assert (await admission.lease(broken)).lease.cause == "ttl_over"

    by_hand(tmp_path, scene)
