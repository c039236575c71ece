"""Run single files of Placement's gabbi suite against a server, exactly as gabbi would.

The files come from the installed openstack-placement wheel and are not changed. Only the HTTP
client learns one thing: a content-length that is no number, which httpx refuses to send.
"""

import http.client
import logging
import unittest
import urllib.parse
from multiprocessing.queues import Queue
from pathlib import Path

import httpx
from gabbi import handlers, httpclient, suitemaker, utils
from placement.tests.functional import fixtures

from tests.conformance.fixtures import fixtures_for
from tests.conformance.imported import Originals, imported_fixtures
from tests.conformance.remote import Remote
from tests.support.suites import Outcome, Tally

FILES = Path(next(iter(fixtures.__path__))).parent / "gabbits"


class LenientHttp(httpclient.Http):  # type: ignore[misc]  # gabbi has no types
    """Gabbi's client; a request whose content-length is no number goes through http.client."""

    def request(
        self, absolute_uri: str, method: str, body: bytes, headers: dict[str, str],
        redirect: bool, timeout: float,
    ) -> tuple[httpx.Headers, bytes]:  # fmt: skip
        length = httpx.Headers(headers).get("content-length", "0")
        if not length.isdigit():
            return plain_request(absolute_uri, method, body, headers, timeout)
        result: tuple[httpx.Headers, bytes] = super().request(
            absolute_uri, method, body, headers, redirect, timeout
        )
        return result


def plain_request(
    url: str, method: str, body: bytes, headers: dict[str, str], timeout: float
) -> tuple[httpx.Headers, bytes]:
    """Send the headers as they are, right or wrong, and answer in gabbi's form."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=timeout)
    try:
        target = urllib.parse.urlunsplit(("", "", parts.path, parts.query, ""))
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        shown = httpx.Headers(answer.getheaders())
        shown["status"] = str(answer.status)
        shown["reason"] = answer.reason
        shown["http_protocol_version"] = "HTTP/1.1"
        return shown, content
    finally:
        connection.close()


class Suite:
    """Placement's suite bound to one server; one per process, as the fixtures are global."""

    def __init__(self, url: str, importing: str | None) -> None:
        """Prepare; `importing` is the command that imports the fixtures, None: none does."""
        httpclient.Http = LenientHttp
        # The fixtures capture logs at DEBUG; the client's own trace is of no use there.
        logging.getLogger("httpcore").setLevel(logging.WARNING)
        self.target = urllib.parse.urlsplit(url)
        remote = Remote(url)
        self.originals: Originals | None = None
        if importing is None:
            self.fixtures = fixtures_for(remote)
        else:
            self.originals = Originals(remote, importing)
            self.fixtures = imported_fixtures(self.originals)

    def run(self, file: str, loss: str | None) -> Outcome:
        """Run the tests of one file in their order; `loss` is what the import loses."""
        if self.originals is not None:
            self.originals.loss = loss
        described = utils.load_yaml(yaml_file=str(FILES / file), safe=True)
        # Nothing here is TLS, and loading certificates takes 30 ms per test.
        described.setdefault("defaults", {})["cert_validate"] = False
        tests = suitemaker.test_suite_from_dict(
            unittest.TestLoader(), Path(file).stem, described, str(FILES),
            self.target.hostname, self.target.port, self.fixtures, None,
            handlers=[handler() for handler in handlers.RESPONSE_HANDLERS],
            test_loader_name="conformance",
        )  # fmt: skip
        outcome = Outcome(file)
        tests.run(Tally(outcome, lambda test: str(test.shortDescription())))
        return outcome


_suite: list[Suite] = []


def bind(importing: str | None, urls: "Queue[str]") -> None:
    """Give this process a server of its own, taken from the queue; see `Suite`."""
    _suite.append(Suite(urls.get(), importing))


def run_file(file: str, loss: str | None = None) -> Outcome:
    """Run one file on this process's server; see `Suite.run`."""
    return _suite[0].run(file, loss)
