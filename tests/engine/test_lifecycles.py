"""The lifecycles are drawn in the documentation as they are, and cover every event they should."""

from pathlib import Path

import pytest

from logyard_domain.codec import TAGS
from logyard_domain.lifecycles import LIFECYCLES, NODE, Lifecycle, diagram

PAGE = Path(__file__).parents[2] / "docs" / "lifecycles.md"


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda one: one.name)
def test_the_page_shows_the_table(lifecycle: Lifecycle) -> None:
    assert f"```mermaid\n{diagram(lifecycle)}\n```" in PAGE.read_text()


def test_every_event_of_a_life_is_in_a_table() -> None:
    nouns = ("workflow.", "stage.", "allocation.", "node.")
    used = {t.event for lifecycle in LIFECYCLES for t in lifecycle.transitions}
    assert {tag for tag in TAGS if tag.startswith(nouns)} == used


def test_what_may_not_happen_is_named() -> None:
    with pytest.raises(ValueError, match=r"node: node\.drained cannot happen in state up"):
        NODE.after("up", "node.drained")
