"""Public workflow files: they read, print, upgrade and match the schema, with known warnings."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from logyard_domain.definition import Workflow, ordered, resolved
from logyard_workflows_dsl import Unreadable, dump, json_schema, load, upgrade

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
CATALOG = "ciq-fuzzball-catalog/rendered"
FILES = [
    path.relative_to(CORPUS).as_posix()
    for pattern in (
        "fuzzball-workflow-examples/*/*.yaml",
        "fuzzball-workflow-examples/*/*.fz",
        f"{CATALOG}/*/*.yaml",
    )
    for path in sorted(CORPUS.glob(pattern))
]
UNFINISHED = f"{CATALOG}/v2.2/ansys_ls_dyna_desktop.yaml"
"""Rendered by its template from inputs that it does not have: four fields say `<no value>`."""

POLICY = "services.xfce4.policy: ignored; only jobs have a policy, a service has no time limit"
WARNINGS = {
    f"{CATALOG}/main/ansys_fluent_desktop.yaml": [f"70:5  {POLICY}"],
    f"{CATALOG}/main/ansys_ls_dyna_desktop.yaml": [f"51:5  {POLICY}"],
    f"{CATALOG}/main/fds.yaml": [
        "6:11  volumes.vol_1.name: ignored, since `reference` says which volume it is; leave it out"
    ],
}
pytestmark = pytest.mark.skipif(not FILES, reason="the corpus of public files is not here")
USABLE = [name for name in FILES if name != UNFINISHED]


def _text(name: str) -> str:
    return (CORPUS / name).read_text(encoding="utf-8")


def test_the_corpus_is_complete() -> None:
    assert len([name for name in FILES if name.startswith("fuzzball-workflow-examples")]) == 10
    cases: list[dict[str, Any]] = msgspec.json.decode(
        (CORPUS / CATALOG / "cases.json").read_bytes()
    )
    assert {case["rendered"] for case in cases if "rendered" in case} <= set(FILES)


@pytest.mark.parametrize("name", USABLE)
def test_reads_with_the_expected_warnings(name: str) -> None:
    loaded = load(_text(name), file="f")
    assert [str(warning).removeprefix("f:") for warning in loaded.warnings] == WARNINGS.get(
        name, []
    )
    assert loaded.upgraded == (loaded.detected_version == "v1")
    workflow = loaded.workflow
    assert load(dump(workflow)).workflow == workflow
    assert msgspec.json.decode(msgspec.json.encode(workflow), type=Workflow) == workflow
    assert set(ordered(workflow)) == {*workflow.jobs, *workflow.services}


@pytest.mark.parametrize("name", USABLE)
def test_upgrades_to_the_same_meaning(name: str) -> None:
    text = _text(name)
    before, upgraded = load(text), upgrade(text)
    after = load(upgraded.text)
    assert after.detected_version == "v4"
    assert after.workflow == upgraded.workflow
    assert resolved(after.workflow) == resolved(before.workflow)
    assert upgrade(upgraded.text).changes == ()
    assert bool(upgraded.changes) == (upgraded.text != text)


def test_counts_of_jobs_and_services() -> None:
    cases: list[dict[str, Any]] = msgspec.json.decode(
        (CORPUS / CATALOG / "cases.json").read_bytes()
    )
    for case in cases:
        if case["expect"] == "ok" and case["rendered"] != UNFINISHED:
            workflow = load(_text(case["rendered"])).workflow
            counted = (len(workflow.jobs), len(workflow.services))
            assert counted == (case["jobs"], case["services"]), case["rendered"]


def test_the_unfinished_file_is_refused_in_all_four_places() -> None:
    with pytest.raises(Unreadable) as refused:
        load(_text(UNFINISHED))
    assert [problem.path for problem in refused.value.problems] == [
        "jobs.xfce4.image.uri",
        "jobs.xfce4.image.secret",
        "jobs.xfce4.resource.cpu.cores",
        "jobs.xfce4.resource.memory.size",
    ]


@pytest.mark.parametrize("name", [name for name in USABLE if name not in WARNINGS])
def test_matches_the_schema(name: str) -> None:
    loaded = load(_text(name))
    validator = jsonschema_rs.validator_for(json_schema(loaded.detected_version))
    plain = _plain(_text(name))
    assert [error.message for error in validator.iter_errors(plain)] == []


def _plain(text: str) -> object:
    return msgspec.yaml.decode(text)
