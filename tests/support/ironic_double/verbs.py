"""Requests for a provision state: what is refused, in Ironic's order, and what starts work."""

from typing import Any, Final

from tests.support.ironic_double import errors
from tests.support.ironic_double.fleet import Fleet
from tests.support.ironic_double.machine import EVENTS, TRANSITIONS
from tests.support.ironic_double.requests import Received

SINCE: Final = {
    **{"manage": 4, "provide": 4, "inspect": 6, "abort": 13, "clean": 15, "adopt": 17},
    **{"rescue": 38, "unrescue": 38, "deploy": 73, "undeploy": 73},
}
"""The first minor version of the API that has a verb."""
SINCE_LATER: Final = {"unhold": 85, "service": 87}
"""The same, of verbs whose version is compared after the state of the node."""

PARAMETERS: Final = (
    *("node_ident", "target", "configdrive", "clean_steps", "deploy_steps", "rescue_password"),
    *("disable_ramdisk", "service_steps", "runbook"),
)


def carry_out(fleet: Fleet, request: Received, *, by_name: bool) -> str:
    """Start what is asked for; return what the request calls the node. Raises Refused."""
    given = _given(request)
    for name in ("node_ident", "target"):
        if given.get(name) is None:
            raise errors.needed(name)
    if strange := given.keys() - {*PARAMETERS}:
        raise errors.fault(400, f"Unexpected arguments: {', '.join(sorted(strange))}")
    ident, target = given["node_ident"], given["target"]
    if not isinstance(target, str):
        raise errors.fault(400, f"Expected string for target: {target}")
    node = fleet.find(ident, by_name=by_name)
    if SINCE.get(target, 0) > request.minor:
        raise errors.not_acceptable()
    if node.members.get("maintenance") and target in ("active", "rebuild"):
        raise errors.in_maintenance(node.uuid)
    event = EVENTS.get(target)
    if event is None or node.state not in TRANSITIONS[event]:
        if node.reservation:
            raise errors.locked(node.uuid, node.reservation)
        raise errors.wrong_state(target, node.uuid, node.state)
    _check_steps(target, given)
    if SINCE_LATER.get(target, 0) > request.minor:
        raise errors.not_acceptable()
    fleet.ask(node, event, given.get(f"{target}_steps") or [])
    if event == "rescue":
        secrets = dict.fromkeys(("rescue_password", "hashed_rescue_password"), "******")
        fleet.touch(node, instance_info={**node.members.get("instance_info", {}), **secrets})
    return str(ident)


def _given(request: Received) -> dict[str, Any]:
    """Return all parameters; what is in the path comes in their order."""
    before, after = request.provision or ([], [])
    return {**request.parameters, **dict(zip(PARAMETERS, (*before, *after), strict=False))}


def _check_steps(target: str, given: dict[str, Any]) -> None:
    for verb in ("clean", "service"):
        if given.get(f"{verb}_steps") and target != verb:
            text = f'"{verb}_steps" is only valid when setting target provision state to {verb}'
            raise errors.fault(400, text)
    for verb in ("clean", "service"):
        if target == verb and not given.get(f"{verb}_steps"):
            text = f'"{verb}_steps" is required when setting target provision state to {verb}'
            raise errors.fault(400, text)
    password = given.get("rescue_password")
    if target == "rescue" and not str(password or "").strip():
        text = 'A non-empty "rescue_password" is required when setting target provision state to'
        raise errors.fault(400, f"{text} rescue")
