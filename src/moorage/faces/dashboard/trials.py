"""Trials: pages that show what an action would do, and what it has done.

The first submission of a form is answered with a preview, which has the same form with the digest
of what is shown. The second one does it, unless it would do something else by then: then the page
shows that instead. A page that is loaded again shows a preview as well, so nothing is done twice.
"""

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

from moorage.faces.dashboard.routing import ROOT, Page, PageRequest, Trial, address_of
from moorage.faces.native_api import RefusedError
from moorage.wire.acting import ActionEffect, ActionWanted
from moorage.wire.operations import acting

CHANGED = "effect_changed"
HOLD_ABOVE_MAX = "hold_above_max"
DIGEST = "digest"

HOMES = {"pool": "pools", "lease": "leases", "agent": "agents"}
"""Where the objects of actions have their pages."""


def trial_page(entry: Trial) -> Page:
    """Return the page that answers a form."""
    return Page(
        path=entry.path,
        title=entry.title,
        template="trial.html",
        show=partial(_show, entry),
        live=False,
        needs=acting.ACT,
    )


async def _show(entry: Trial, request: PageRequest) -> Mapping[str, Any]:
    wanted = dict(entry.wanted(request))
    back = home_of(wanted)
    shown: dict[str, Any] = {
        "title": f"{entry.title} {wanted['target']}",
        "verb": entry.title,
        "target": wanted["target"],
        "back": back,
        "action": request.address_at(request.path),
        "state": "shown",
        "refused": "",
        "undo": None,
    }
    try:
        effect, shown["state"] = await _effect(request, wanted)
    except RefusedError as refused:
        if refused.status != HTTPStatus.CONFLICT and refused.code != HOLD_ABOVE_MAX:
            raise
        # A page can be old: what it offers may not be possible any more, as after a first click.
        return {**shown, "state": "refused", "refused": refused.message}
    if effect.undo is not None:
        shown["undo"] = undo_form(effect.undo, back)
    fields = {name: text for name, text in request.form.items() if name != DIGEST}
    return {**shown, "effect": effect, "fields": {**fields, DIGEST: effect.digest}}


async def _effect(request: PageRequest, wanted: Mapping[str, Any]) -> tuple[ActionEffect, str]:
    """Return what an action has done or would do, and the state of the page. Raises RefusedError.

    The state is `done`; `shown`, it is to be confirmed; `changed`, it differs from what was shown.
    """
    state = "shown"
    if request.form.get(DIGEST):
        try:
            body = {**wanted, DIGEST: request.form[DIGEST]}
            return await request.ask(acting.ACT, body=body), "done"
        except RefusedError as refused:
            if refused.code != CHANGED:
                raise
            state = "changed"
    return await request.ask(acting.PREVIEW_ACTION, body=wanted), state


def home_of(wanted: Mapping[str, Any]) -> str:
    """Return the page of what an action is about."""
    home = HOMES[str(wanted["action"]).partition(".")[0]]
    return address_of(f"{ROOT}/{home}/{wanted['target']}", {})


def undo_form(undo: ActionWanted, home: str) -> tuple[str, dict[str, object]]:
    """Return the target and the fields of the form that takes an action back."""
    if undo.action == "pool.tune":
        pacing = undo.pacing
        fields: dict[str, object] = {
            "limit": "" if undo.limit is None else undo.limit,
            "interval": 0 if pacing is None else pacing.interval,
            "burst": 1 if pacing is None else pacing.burst,
            "jitter": 0 if pacing is None else pacing.jitter,
            "generation": "" if undo.generation is None else undo.generation,
        }
        return f"{home}:tune", fields
    if undo.action == "lease.move":
        return f"{home}/priority", {"priority": undo.priority}
    return f"{home}{':' if undo.action.startswith('pool.') else '/'}resume", {}
