"""Files of evidence that are wrong are refused, with the place in the file."""

from typing import Any

import pytest

from moorage.client.plans.evidence import EvidenceError, of_cells, of_class, of_devices

WRONG: list[tuple[Any, str]] = [
    ([], "the file: this must be an object"),
    ({"children": {}, "guests": {}}, "the file: guests is unknown"),
    ({"consumers": {}}, "the file: children is missing"),
    ({"children": {"gpu0": 4}}, "children: gpu0: this must be an object"),
    ({"children": {"gpu0": {}}}, "children: gpu0: total is missing"),
    ({"children": {"gpu0": {"total": "4"}}}, "gpu0: total: this must be a whole number"),
    ({"children": {"gpu0": {"total": True}}}, "gpu0: total: this must be a whole number"),
    ({"children": {"gpu0": {"total": 1, "allocation_ratio": 0}}}, "ratio: this must be above 0"),
    ({"children": {"gpu0": {"total": 1, "traits": "A"}}}, "gpu0: traits: this must be a list"),
    ({"children": {}, "consumers": {"a": 1}}, "consumers: a: this must be an object"),
    ({"children": {}, "consumers": {"a": {"gpu0": -1}}}, "a: gpu0: this must be a whole number"),
]


@pytest.mark.parametrize(("document", "message"), WRONG, ids=[message for _, message in WRONG])
def test_the_place_is_named(document: Any, message: str) -> None:
    """The control beside it is right."""
    assert of_class({"children": {"gpu0": {"total": 1}}}, "VGPU").classes == ["VGPU"]
    with pytest.raises(EvidenceError, match=message):
        of_class(document, "VGPU")


def test_cells_and_devices() -> None:
    """They have members of their own; an address that YAML takes for a number is refused."""
    with pytest.raises(EvidenceError, match="cells: c0: VCPU: total is missing"):
        of_cells({"cells": {"c0": {"inventories": {"VCPU": {"reserved": 1}}}}})
    with pytest.raises(EvidenceError, match="consumers: a: c0: this must be an object"):
        of_cells({"cells": {"c0": {"inventories": {"VCPU": 1}}}, "consumers": {"a": {"c0": 1}}})
    with pytest.raises(EvidenceError, match=r"devices: 60\.0 must be text: put it in quotes"):
        of_devices({"devices": {60.0: {"class": "CUSTOM_A"}}}, "node")
    with pytest.raises(EvidenceError, match=r"devices: 0000:81:00\.0: class is missing"):
        of_devices({"devices": {"0000:81:00.0": {}}}, "node")
