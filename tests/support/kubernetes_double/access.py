"""Who may do what: bearer tokens, and the rules of roles."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.support.kubernetes_double import status
from tests.support.kubernetes_double.requests import Received, Target

Document = dict[str, Any]


@dataclass(frozen=True)
class Grant:
    """A rule of a role, in a namespace; None: in all, and for what has none."""

    namespace: str | None
    rule: Document

    def allows(self, request: Received) -> bool:
        """Return whether the rule allows a request."""
        target, rule = request.asked, self.rule
        names = rule.get("resourceNames")
        resource = f"{target.kind.plural}/{target.part}" if target.part else target.kind.plural
        stars = {"*", f"*/{target.part}"} if target.part else {"*"}
        # A list or a watch of one name, by its field, is allowed by a rule about that name.
        name = target.name or _named_by_field(request)
        return (
            self.namespace in (None, _space(target))
            and not {request.asked_verb, "*"}.isdisjoint(rule.get("verbs", ()))
            and not {target.kind.group, "*"}.isdisjoint(rule.get("apiGroups", ()))
            and not {resource, *stars}.isdisjoint(rule.get("resources", ()))
            and (not names or (name in names and request.asked_verb != "create"))
        )


def _space(target: Target) -> str:
    """Return the namespace of a request; that of a namespace is itself."""
    is_one = (target.kind.group, target.kind.plural) == ("", "namespaces")
    return target.name if is_one else target.namespace


def _named_by_field(request: Received) -> str:
    for term in request.query.get("fieldSelector", "").split(","):
        name, _, value = term.partition("=")
        if name == "metadata.name":
            return value.removeprefix("=")
    return ""


@dataclass(frozen=True)
class Account:
    """Who sends requests; `grants` None: everything is allowed."""

    user: str
    grants: tuple[Grant, ...] | None = None


ADMIN = Account("kubernetes-admin")


@dataclass
class Access:
    """The accounts by their tokens. Without any, requests need no token."""

    accounts: dict[str, Account] = field(default_factory=dict)
    denied: list[str] = field(default_factory=list)

    def account(self, request: Received) -> Account:
        """Return who sends a request. Raises Refused."""
        if not self.accounts:
            return ADMIN
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        found = self.accounts.get(token.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise status.Refused(401, "Unauthorized")
        return found

    def acting(self, request: Received) -> Account:
        """Return as whom a request is sent: who may do everything may act for others."""
        own, name = self.account(request), request.headers.get("impersonate-user")
        if name is None or own.grants is not None:
            return own
        known = (one for one in self.accounts.values() if one.user == name)
        return next(known, Account(name, ()))

    def check(self, account: Account, request: Received) -> None:
        """Refuse what no rule allows, whether it is there or not. Raises Refused, NotServed."""
        if account.grants is None:
            return
        try:
            target = request.asked
        except status.NotServed:
            what = f'{request.method.lower()} path "{request.path}"'
            raise status.Refused(403, f'forbidden: User "{account.user}" cannot {what}') from None
        if any(grant.allows(request) for grant in account.grants):
            return
        resource = f"{target.kind.plural}/{target.part}" if target.part else target.kind.plural
        named = target.name or _named_by_field(request)
        name = f' "{named}"' if named else ""
        place = f'in the namespace "{space}"' if (space := _space(target)) else ""
        text = (
            f"{status.qualified(target.kind.group, target.kind.plural)}{name} is forbidden: User "
            f'"{account.user}" cannot {request.asked_verb} resource "{resource}" in API group '
            f'"{target.kind.group}" {place or "at the cluster scope"}'
        )
        self.denied.append(text)
        details = {"group": target.kind.group, "kind": target.kind.plural, "name": named}
        raise status.Refused(403, text, **details)


def service_account(documents: Iterable[Document], namespace: str, name: str) -> Account:
    """Return what manifests grant to a service account by their roles and bindings."""
    found = [one for one in documents if one]
    grants = tuple(_granted(found, namespace, name))
    return Account(f"system:serviceaccount:{namespace}:{name}", grants)


def _granted(documents: list[Document], namespace: str, name: str) -> Iterator[Grant]:
    for binding in documents:
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        if not any(subject.items() <= one.items() for one in binding.get("subjects", ())):
            continue
        own = binding["kind"] == "RoleBinding"
        space = binding["metadata"].get("namespace", namespace) if own else None
        wanted = binding["roleRef"]
        for role in documents:
            metadata = role["metadata"]
            if (role["kind"], metadata["name"]) != (wanted["kind"], wanted["name"]):
                continue
            if role["kind"] == "Role" and metadata.get("namespace", namespace) != space:
                continue
            for rule in role["rules"]:
                yield Grant(space, rule)
