"""What a file of hooks may say, and what a hook sends about a lease."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from moorage.cli.main import cli
from moorage.integrations.webhooks.cursor_files import CursorFile, Place
from moorage.integrations.webhooks.hook_files import HooksError, hooks_in
from moorage.integrations.webhooks.hooks import Hook
from moorage.integrations.webhooks.posting import Verdict, _judged
from moorage.integrations.webhooks.secret_values import SecretError
from moorage.integrations.webhooks.signatures import signature
from moorage.integrations.webhooks.templates import UnfilledError
from moorage.wire.changes import LeaseValue, NeedValue
from tests.support.pages import examples

PAGE = Path(__file__).resolve().parents[3] / "docs/howto/ci-webhooks.md"
AT = datetime(2026, 3, 1, 8, tzinfo=UTC)
NOW = 1_772_352_000
NEED = NeedValue(pool="install/azure", units=1, state="", dest="", wanted=None)


def one(**changed: Any) -> LeaseValue:
    """Return a lease, as the feed has it."""
    values: dict[str, Any] = {
        **{"id": "01a22148", "key": "job-17", "owner": "shop/ci", "state": "granted"},
        **{"needs": [NEED], "slots": {}},
        **{"labels": {"notify": "ci", "build": "4711"}, "priority": 0, "arrival": 1, "ttl": 60.0},
        **{"hold": None, "forced": False, "asked_at": AT, "granted_at": AT, "hold_until": None},
        **{"ended_at": None, "cause": None, "detail": "", "outcome": None, "group": None},
        **{"superseded_by": None, "stop_until": None, "alternatives": None, "offer": None},
        **{"taken_from": None, "kept": None, "place": 0, "preemptible": None},
        **{"preempted_by": None, "booking": None, "yields_to": None},
    }
    return LeaseValue(**{**values, **changed})


def hook_of(tmp_path: Path, *lines: str) -> Hook:
    """Return the hook of a file with these lines."""
    path = tmp_path / "hooks.toml"
    given = "\n".join(lines)
    url = "" if re.search("(?m)^url ", given) else 'url = "https://ci.example.com/hook"\n'
    path.write_text(f"[ci]\n{url}{given}\n")
    (hook,) = hooks_in(str(path))
    return hook


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('url = "http://ci.example.com/hook"', "insecure"),
        ('url = "http://127.0.0.1.example.com/"', "insecure"),
        ('url = "ftp://ci.example.com/"', "https://HOST"),
        ('url = "https://{labels.host}/hook"', "only in its path"),
        ('url = "https://me:secret@ci.example.com/hook"', "password"),
        ('url = "https://ci.example.com/a b"', "visible ASCII"),
        ('url = "https://ci.example.com/{labels.a}/../b"', "part of its path"),
        ('url = "https://ci.example.com/{secrets.none}"', "no secrets.none"),
        ('url = "https://ci.example.com/{token}"', "no token"),
        ('events = ["waiting"]', "granted and ended"),
        ('attend = true\nevents = ["ended"]', "attend needs"),
        ('method = "GET"', "POST or PUT"),
        ('headers = {X-Build = "{labels.build}"}', "secrets only"),
        ('headers = {Webhook-Id = "1"}', "cannot be set"),
        ('headers = {X = "a\\r\\nHost: b"}', "one line"),
        ('signed_with = "none"', "no secret"),
        ('secrets.token = "literally"', "file = PATH"),
        ("attend = 1", "another kind"),
        ("body = {at = 2026-03-01}", "JSON"),
        ("body = {at = nan}", "JSON"),
        ("atend = true", "not known"),
        ('ca_file = "/nowhere"', "cannot read"),
    ],
)
def test_files_that_are_not_valid(tmp_path: Path, line: str, said: str) -> None:
    """They are refused at the start, with the reason, and without a secret."""
    with pytest.raises(HooksError, match=said) as refused:
        hook_of(tmp_path, line)
    assert "hook ci" in str(refused.value)
    assert "literally" not in str(refused.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/a", "http://[::1]:1/a", "http://localhost/a"])
def test_loopback_needs_no_encryption(tmp_path: Path, url: str) -> None:
    """Nor does another machine that the file permits."""
    assert hook_of(tmp_path, f'url = "{url}"').url == url
    other = hook_of(tmp_path, 'url = "http://ci.example.com/a"', "insecure = true")
    assert other.server == "http://ci.example.com"


def test_the_hooks_of_the_page(tmp_path: Path) -> None:
    """Each is valid, and is what its CI system expects as far as a request can show that."""
    path = tmp_path / "hooks.toml"
    path.write_text("\n".join(re.findall(r"(?s)```toml\n(.*?)```", PAGE.read_text())))
    hooks = {hook.name: hook for hook in hooks_in(str(path))}
    assert len(hooks) == 7
    assert all(hook.attend for hook in hooks.values())
    labels = {"build": "12", "block": "0190", "play": "77", "webhook": "installer-1"}
    lease = one(owner="ci", labels=labels)
    for hook in hooks.values():
        known = replace(hook, secrets={name: lambda: "s3cret" for name in hook.secrets})
        post = known.post("granted", lease, NOW)
        assert "{" not in post.target
        assert "s3cret" not in post.target
        json.loads(post.body)
    trigger = replace(hooks["gitlab-trigger"], secrets={"trigger": lambda: "s3cret"})
    assert json.loads(trigger.post("granted", lease, NOW).body) == {
        "token": "s3cret",
        "ref": "main",
        "variables": {"LEASE_KEY": "job-17"},
    }
    buildkite = replace(hooks["buildkite"], secrets={"token": lambda: "s3cret"})
    post = buildkite.post("granted", lease, NOW)
    assert post.target.endswith("/builds/12/jobs/0190/unblock")
    assert post.headers["Authorization"] == "Bearer s3cret"


def test_the_receiver_of_the_page() -> None:
    """It takes what is signed now with its secret, and nothing else."""
    (code,) = examples(PAGE)
    found: dict[str, Any] = {}
    exec(code, found)  # it is the example of the page
    now = int(found["time"].time())
    body = b'{"event":"granted"}'
    for at, secret, taken in ((now, "one", True), (now - 400, "one", False), (now, "two", False)):
        headers = {"webhook-id": "a_granted_1", "webhook-timestamp": str(at)}
        headers["webhook-signature"] = signature(secret, headers["webhook-id"], at, body)
        assert found["is_genuine"](headers, body, b"one") is taken


def test_a_signature_of_the_specification() -> None:
    """The example of Standard Webhooks, with its secret in base64."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    wanted = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body) == wanted
    with pytest.raises(ValueError, match="base64"):
        signature("whsec_!", "id", 1, b"")


def test_what_concerns_a_hook(tmp_path: Path) -> None:
    """By the label, or by pool; and only of its owners."""
    lease, other = one(), one(labels={"notify": "other"})
    assert [hook_of(tmp_path).event(found) for found in (lease, other)] == ["granted", None]
    pools = hook_of(tmp_path, 'pools = ["install/*"]')
    assert [pools.event(found) for found in (lease, other)] == ["granted", "granted"]
    assert hook_of(tmp_path, 'pools = ["build/*"]').event(lease) is None
    assert hook_of(tmp_path, 'owners = ["shop/*"]').event(lease) == "granted"
    assert hook_of(tmp_path, 'owners = ["other/*"]').event(lease) is None
    assert hook_of(tmp_path, 'events = ["ended"]').event(lease) is None
    assert hook_of(tmp_path).event(one(state="waiting")) is None


def test_labels_stay_in_their_place(tmp_path: Path) -> None:
    """Who asks for a lease cannot choose another path, host, header or member of the body."""
    hook = hook_of(
        tmp_path,
        'url = "https://ci.example.com/builds/{labels.build}/run?key={key}"',
        'body = {build = "{labels.build}", nested = ["{key}"]}',
    )
    wild = 'x/..y?a=b#c/","admin":"1\r\nHost: y'
    post = hook.post("granted", one(labels={"build": wild}, key="a&b=c"), NOW)
    assert re.fullmatch(r"/builds/[^/?#&=\s]+/run\?key=a%26b%3Dc", post.target)
    assert json.loads(post.body) == {"build": wild, "nested": ["a&b=c"]}
    for build in ("", ".", "..", "../x", "x/../../y", "..\\x", "..;x", "x/."):
        with pytest.raises(UnfilledError):
            hook.post("granted", one(labels={"build": build}), NOW)
    with pytest.raises(UnfilledError, match="labels build"):
        hook.post("granted", one(labels={}), NOW)


def test_names_do_not_make_dots_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text is harmless, but the path would lead elsewhere; a query may have any text."""
    monkeypatch.setenv("HOOK", "s3cret")
    hook = hook_of(
        tmp_path,
        'url = "https://ci.example.com/{secrets.hook}/{labels.a}{labels.b}?of={labels.of}"',
        'secrets.hook = {variable = "HOOK"}',
    )

    def target(a: str, b: str) -> str:
        labels = {"a": a, "b": b, "of": "x/../y"}
        return hook.post("granted", one(labels=labels), NOW).target

    assert target("x/.", "y") == "/s3cret/x%2F.y?of=x%2F..%2Fy"
    with pytest.raises(UnfilledError) as refused:
        target("x/.", "./y")
    assert "s3cret" not in str(refused.value)


def test_the_id_of_a_post(tmp_path: Path) -> None:
    """It is the same at each try, and another one for another grant of the same ticket."""
    hook = hook_of(tmp_path)
    ids = [hook.post("granted", one(), NOW + late).id for late in (0, 60)]
    assert ids[0] == ids[1]
    assert hook.post("granted", one(granted_at=AT.replace(microsecond=1)), NOW).id != ids[0]
    ended = one(state="ended", ended_at=AT)
    assert hook.post("ended", ended, NOW).id != ids[0]
    assert "." not in ids[0], "it would end the id in the text that is signed"


def test_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read for each post; what is none, or would be several headers, is not sent."""
    file = tmp_path / "token"
    lines = ('headers = {Authorization = "Bearer {secrets.token}"}',)
    hook = hook_of(tmp_path, *lines, f'secrets.token = {{file = "{file}"}}')
    for text in ("", "a\nb", "\u00e4"):
        file.write_text(text)
        with pytest.raises(SecretError, match="token"):
            hook.post("granted", one(), NOW)
    file.write_text("first\n")
    assert hook.post("granted", one(), NOW).headers["Authorization"] == "Bearer first"
    file.write_text("second\n")
    assert hook.post("granted", one(), NOW).headers["Authorization"] == "Bearer second"
    file.unlink()
    with pytest.raises(SecretError, match="cannot read"):
        hook.post("granted", one(), NOW)
    variable = hook_of(tmp_path, *lines, 'secrets.token = {variable = "HOOK"}')
    monkeypatch.setenv("HOOK", "third")
    assert variable.post("granted", one(), NOW).headers["Authorization"] == "Bearer third"


def test_answers() -> None:
    """Those about the receiver are repeated, those about the post are final."""
    verdicts = {
        Verdict.TAKEN: (200, 202, 204),
        Verdict.LATER: (401, 403, 407, 408, 425),
        Verdict.BUSY: (429, 502, 503, 504),
        Verdict.REFUSED: (301, 302, 307, 400, 404, 409, 410, 413, 422),
        Verdict.FAILED: (500, 501),
    }
    for verdict, statuses in verdicts.items():
        assert {_judged(status, None).verdict for status in statuses} == {verdict}
    assert _judged(403, None, of_lease=True).verdict is Verdict.FAILED  # it may be of the post
    assert _judged(401, None, of_lease=True).verdict is Verdict.LATER
    assert _judged(429, "7").retry_after == 7.0
    assert _judged(429, "999999").retry_after == 300.0
    assert _judged(503, "Sun, 01 Mar 2026 08:00:00 GMT").retry_after is None


@pytest.mark.parametrize(
    ("line", "addressed"),
    [
        ('url = "https://ci.example.com/{labels.build}"', True),
        ('body = {build = ["{key}"]}', True),
        ('body = {what = "{event}"}', False),
        ("", False),
    ],
)
def test_who_chooses_what_is_asked(tmp_path: Path, line: str, addressed: bool) -> None:
    """A lease does if it fills in a name; what is posted by default says only what it is."""
    assert hook_of(tmp_path, line).is_addressed is addressed


def test_places_outlast_a_crash(tmp_path: Path) -> None:
    """The place is whole or the one before; one that cannot be read is not taken for a start."""
    file = CursorFile(str(tmp_path), "ci")
    assert file.read() is None
    for place in (Place("1.7"), Place("1.8.2", AT)):
        file.write(place)
        assert file.read() == place
    (tmp_path / "ci.cursor").write_text("")
    with pytest.raises(ValueError, match="remove it"):
        file.read()


def test_a_secret_in_base64() -> None:
    """It gives the same signature as its bytes."""
    plain = signature("secret", "id", 1, b"body")
    assert signature("whsec_" + b64encode(b"secret").decode(), "id", 1, b"body") == plain


@pytest.mark.parametrize(
    ("hooks", "server", "said"),
    [
        (None, "http://127.0.0.1:1", "cannot use"),
        ("[ci]", "http://127.0.0.1:1", "hook ci: url must be"),
        ('[ci]\nurl = "https://ci.example.com/"', "", "no server is set"),
    ],
)
def test_the_command_ends_if_it_cannot_work(
    tmp_path: Path, hooks: str | None, server: str, said: str
) -> None:
    """The exit code is that of a wrong usage, so that a supervisor need not try again."""
    path = tmp_path / "hooks.toml"
    if hooks is not None:
        path.write_text(hooks)
    words = ["notify", "--hooks", str(path), "--state", str(tmp_path / "state")]
    where = {"MOORAGE_URL": server, "MOORAGE_TOKEN": "none", "HOME": str(tmp_path)}
    done = CliRunner().invoke(cli, words, prog_name="moorage", env=where)
    assert done.exit_code == 2, done.output
    assert said in done.output
