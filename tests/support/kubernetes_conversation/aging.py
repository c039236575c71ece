"""Steps: what is left of lists and watches after a compaction of etcd, and after a restart."""

from tests.support.kubernetes_conversation.steps import (
    HOSTS,
    Ask,
    Of,
    Step,
    Watch,
    create,
    get,
    host,
)

VERSION = Of("a page that ages", "metadata.resourceVersion")
REST = {"limit": "1", "continue": Of("a page that ages", "metadata.continue")}
WATCHED = {"resourceVersion": VERSION, "timeoutSeconds": "1"}

YOUNG: tuple[Step, ...] = (
    *(create(name, host(name)) for name in ("old-a", "old-b", "old-c")),
    get("a page that ages", HOSTS, limit="1"),
    create("newer", host("newer")),
)
COMPACTED: tuple[Step, ...] = (
    get("the page after a compaction", HOSTS, **REST),
    Watch("a watch after a compaction", HOSTS, WATCHED),
)
RESTARTED: tuple[Step, ...] = (
    Ask("read after a restart", "GET", f"{HOSTS}/newer", until=200),
    Ask("the page after a restart", "GET", HOSTS, query=REST, until=410),
    Watch("a watch after a restart", HOSTS, WATCHED),
    get("the past after a restart", HOSTS, resourceVersion=VERSION, resourceVersionMatch="Exact"),
)
