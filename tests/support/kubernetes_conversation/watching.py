"""Steps: watches. Those in which bookmarks come take some seconds."""

from tests.support.kubernetes_client import least_status
from tests.support.kubernetes_conversation.steps import (
    HOSTS,
    TABLE,
    Of,
    Step,
    Watch,
    create,
    delete,
    get,
    host,
    merge,
)

MARKS = {"allowWatchBookmarks": "true"}
FROM = {"resourceVersion": Of("hosts to watch", "metadata.resourceVersion")}
SHORT = {"timeoutSeconds": "1"}
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}

WATCHES: tuple[Step, ...] = (
    create("watched", host("watched", labels={"rack": "1"})),
    get("hosts to watch", HOSTS),
    Watch(
        "a watch",
        HOSTS,
        {**FROM, **MARKS, "timeoutSeconds": "4"},
        (
            create("new", host("new", finalizers=["a.b/c"])),
            merge("new changes", f"{HOSTS}/new", {"spec": {"description": "x"}}),
            merge("new has a status", f"{HOSTS}/new/status", {"status": least_status()}),
            merge("new stays the same", f"{HOSTS}/new", {"spec": {"description": "x"}}),
            create("new for show", host("shown"), dryRun="All"),
            delete("new is deleted", f"{HOSTS}/new"),
            merge("new is gone", f"{HOSTS}/new", {"metadata": {"finalizers": None}}),
        ),
    ),
    Watch("the past", HOSTS, {**FROM, **SHORT}),
    Watch(
        "a selection",
        HOSTS,
        {**FROM, **SHORT, "labelSelector": "rack=1"},
        (
            merge("it leaves", f"{HOSTS}/watched", {"metadata": {"labels": {"rack": "2"}}}),
            merge("it is away", f"{HOSTS}/watched", {"spec": {"description": "away"}}),
            merge("it comes back", f"{HOSTS}/watched", {"metadata": {"labels": {"rack": "1"}}}),
        ),
    ),
    get("hosts to watch later", HOSTS),
    Watch("one name", HOSTS, {**SHORT, "fieldSelector": "metadata.name=watched"}),
    get("one host is read, not watched", f"{HOSTS}/watched", watch="1"),
    Watch("any version of a watch", HOSTS, {**SHORT, "resourceVersion": "0"}),
    Watch("no version of a watch", HOSTS, {**SHORT, **MARKS}),
    Watch("initial events", HOSTS, {**SHORT, **MARKS, **INITIAL}),
    Watch("initial events without bookmarks", HOSTS, {**SHORT, **INITIAL}),
    Watch("initial events of no match", HOSTS, {**SHORT, "sendInitialEvents": "true"}),
    Watch("a match of no initial events", HOSTS, {**SHORT, "resourceVersionMatch": "NotOlderThan"}),
    Watch(
        "a quiet watch",
        HOSTS,
        {
            "resourceVersion": Of("hosts to watch later", "metadata.resourceVersion"),
            "timeoutSeconds": "1",
            **MARKS,
        },
    ),
    Watch(
        "the future",
        HOSTS,
        {"resourceVersion": "99999999999", "timeoutSeconds": "3", **MARKS},
        (create("in the future", host("future")),),
    ),
    Watch("before everything", HOSTS, {**SHORT, "resourceVersion": "1"}),
    Watch("no number of a watch", HOSTS, {**SHORT, "resourceVersion": "abc"}),
    Watch(
        "a table of a watch",
        HOSTS,
        {**SHORT, "labelSelector": "rack=1"},
        (merge("a row", f"{HOSTS}/watched", {"spec": {"online": False}}),),
        TABLE,
    ),
)
