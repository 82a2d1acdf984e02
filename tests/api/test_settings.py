"""Settings: which source wins, and what is said of a wrong one."""

from pathlib import Path

import pytest

from logyard_api.auth import Guard, is_loopback, read_token
from logyard_api.settings import Settings, Unusable, load

TOKEN = "0123456789abcdef-token"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_defaults_are_one_node_on_loopback() -> None:
    settings = load({}, {"XDG_DATA_HOME": "/some/where"})
    assert settings == Settings(data=Path("/some/where/logyard"))
    assert is_loopback(settings.host) and settings.nodes == 1


def test_flags_win_over_environment_over_file(elsewhere: Path) -> None:
    file = elsewhere / "logyard.toml"
    file.write_text(
        'port = 1\nhost = "localhost"\ncluster = "c"\n[decisions]\nnode.lostAfter = 9000\n'
    )
    environment = {"LOGYARD_PORT": "2", "LOGYARD_CLUSTER": "d"}
    settings = load({"port": "3"}, environment)
    assert (settings.port, settings.cluster, settings.host) == (3, "d", "localhost")
    assert settings.decisions == {"node.lostAfter": 9000}


def test_a_relative_folder_in_a_file_is_beside_the_file(elsewhere: Path) -> None:
    file = elsewhere / "etc" / "yard.toml"
    file.parent.mkdir()
    file.write_text('data = "var"\n')
    assert load({}, {}, file).data == elsewhere / "etc" / "var"


def test_pairs_are_read_from_text_and_tables() -> None:
    settings = load(
        {"node-annotations": {"zone": "a"}},
        {"LOGYARD_NODE_DEVICES": "nvidia.com/gpu=2, x=1", "LOGYARD_NODE_MEMORY": "2GiB"},
    )
    assert settings.node_devices == {"nvidia.com/gpu": 2, "x": 1}
    assert settings.node_annotations == {"zone": "a"}
    assert settings.node_memory_bytes == 2 * 1024**3


def test_decisions_are_read_as_people_write_them(elsewhere: Path) -> None:
    (elsewhere / "logyard.toml").write_text(
        "[decisions]\n"
        'workflow.killGrace = "45s"\n'
        'scheduler.priority = "user.priority"\n'
        "scheduler.preemption.priorityGap = 2\n"
        "scheduler.preemption.multiVictim.enabled = true\n"
    )
    assert load({}, {}).decisions == {
        "workflow.killGrace": 45_000,
        "scheduler.priority": "user.priority",
        "scheduler.preemption.priorityGap": 2.0,
        "scheduler.preemption.multiVictim.enabled": True,
    }
    expression = "clamp(user.priority, 0, 9) + (group.name == 'a' ? 1 : 0)"
    text = f"node.lostAfter=9000,scheduler.priority={expression}, scheduler.backfill.enabled=false"
    assert load({}, {"LOGYARD_DECISIONS": text}).decisions == {
        "node.lostAfter": 9_000,
        "scheduler.priority": expression,
        "scheduler.backfill.enabled": False,
    }


@pytest.mark.parametrize(
    ("flags", "environment", "said"),
    [
        ({"prot": 1}, {}, "--prot: no such setting; did you mean `port`?"),
        ({}, {"LOGYARD_PORT": "http"}, "LOGYARD_PORT: 'http' cannot be used"),
        ({"port": 70000}, {}, "port 70000: a port is between 0 and 65535"),
        ({"log-level": "loud"}, {}, "it is one of debug, info, warning, error"),
        ({"node-devices": "gpu"}, {}, "--node-devices: 'gpu' is no pair; write key=value"),
        ({"node-memory": "much"}, {}, "`much` is no size"),
        ({"node-cores": -1}, {}, "node-cores -1"),
        ({"nodes": 100_000}, {}, "between 0 and 1000 nodes"),
        ({"decisions": "node.lostAftr=1"}, {}, "did you mean node.lostAfter?"),
        ({"decisions": {"node.lostAfter": 1}}, {}, "too small; the least is 100"),
        (
            {"decisions": {"node": {"lostAfter": "soon"}}},
            {},
            "node.lostAfter: `soon` is no duration",
        ),
        (
            {},
            {"LOGYARD_DECISIONS": "scheduler.priority=grup.priority"},
            "LOGYARD_DECISIONS:\nscheduler.priority:1:1  grup.priority is not a variable",
        ),
        ({"host": "0.0.0.0"}, {}, "no token is set: give --token-file FILE or LOGYARD_TOKEN"),
        ({"token": "short"}, {}, "the least is 16"),
        ({"token": TOKEN, "token-file": "x"}, {}, "both set; keep one"),
        ({"token-file": "nowhere"}, {}, "token file nowhere: No such file"),
    ],
)
def test_wrong_settings_say_what_would_be_right(
    flags: dict[str, object], environment: dict[str, str], said: str
) -> None:
    with pytest.raises(Unusable) as caught:
        load(flags, environment)
    assert said in str(caught.value)


def test_a_file_that_is_no_toml_is_named(elsewhere: Path) -> None:
    file = elsewhere / "x.toml"
    file.write_text("port = \n")
    with pytest.raises(Unusable, match=r"x\.toml: this is no TOML.*line 1"):
        load({}, {}, file)


def test_a_token_file_must_be_private(elsewhere: Path) -> None:
    file = elsewhere / "token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o644)
    with pytest.raises(ValueError, match="others can read it; run chmod 600"):
        read_token(file)
    file.chmod(0o600)
    assert load({"token-file": str(file), "host": "0.0.0.0"}, {}).token == TOKEN


def test_the_guard_admits_its_token_only() -> None:
    guard = Guard(TOKEN)
    assert guard.admits("/v4/nodes", [(b"authorization", f"bearer {TOKEN}".encode())])
    assert guard.admits("/v4/version", [])
    assert not guard.admits("/v4/nodes", [])
    assert not guard.admits("/v4/nodes", [(b"authorization", f"Basic {TOKEN}".encode())])
    assert not guard.admits("/v4/nodes", [(b"authorization", f"Bearer {TOKEN}x".encode())])
    assert Guard("").admits("/v4/nodes", [])
