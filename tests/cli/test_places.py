"""Which server is asked, and the contexts that remember servers."""

import json
from pathlib import Path

import pytest

from logyard_api.cli import contexts, places
from logyard_api.cli.contexts import Context, Contexts
from logyard_api.cli.outcomes import NoServer, Trouble
from tests.cli.terminal import Terminal, terminal

__all__ = ["terminal"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    for name in ("LOGYARD_SERVER", "LOGYARD_TOKEN", "LOGYARD_DATA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_the_most_exact_word_wins(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = places.data_folder()
    data.mkdir(parents=True)
    (data / "server.json").write_text(json.dumps({"url": "http://127.0.0.1:1"}))
    assert places.find(None).url == "http://127.0.0.1:1"
    contexts.save(places.config_file(), Contexts("lab", {"lab": Context("http://lab:2")}))
    assert places.find(None)[::2] == ("http://lab:2", "context lab")
    monkeypatch.setenv("LOGYARD_SERVER", "env:3")
    assert places.find(None)[::2] == ("http://env:3", "LOGYARD_SERVER")
    assert places.find("https://told:4/yard/")[::2] == ("https://told:4/yard", "--server")
    assert places.find("https://told:4/yard/").prefix == "/yard"


def test_without_any_word_it_says_how_to_start_one(home: Path) -> None:
    with pytest.raises(NoServer, match="logyard serve") as found:
        places.find(None)
    assert str(home / "share" / "logyard") in found.value.message
    assert found.value.code == 3


@pytest.mark.parametrize("text", ["ftp://x", "http://", "http://x:port", "://"])
def test_what_is_no_address_is_said(home: Path, text: str) -> None:
    with pytest.raises(Trouble, match="is no address of a server") as found:
        places.find(text)
    assert found.value.code == 2


def test_the_token_comes_from_the_environment_or_the_context(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = home / "token"
    secret.write_text("from-file\n")
    kept = Contexts("lab", {"lab": Context("http://lab", str(secret))})
    contexts.save(places.config_file(), kept)
    assert places.find(None).token == "from-file"
    monkeypatch.setenv("LOGYARD_TOKEN", "from-env")
    assert places.find(None).token == "from-env"
    monkeypatch.delenv("LOGYARD_TOKEN")
    secret.unlink()
    with pytest.raises(Trouble, match="token file"):
        places.find(None)


def test_a_server_started_here_is_found_by_its_settings(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    (home / "logyard.toml").write_text('data = "yard"\n')
    (home / "yard").mkdir()
    (home / "yard" / "server.json").write_text(json.dumps({"url": "http://127.0.0.1:5"}))
    assert places.find(None).url == "http://127.0.0.1:5"
    (home / "logyard.toml").write_text("data = ")
    with pytest.raises(Trouble, match=r"logyard.toml"):
        places.find(None)


def test_contexts_come_back_as_they_were_saved(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "config.toml"
    kept = Contexts('a "b" é', {'a "b" é': Context("http://x", "/t\\x"), "c": Context("http://y")})
    contexts.save(file, kept)
    assert contexts.load(file) == kept


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("current = ", "config.toml"),
        ('current = "x"', "'x', is not in it"),
        ("[contexts.x]\nport = 1", "needs a line like server"),
        ("contexts = 3", "needs a line like server"),
    ],
)
def test_a_broken_file_of_contexts_is_named(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(Trouble, match=what):
        contexts.load(file)


def test_contexts_on_the_command_line(terminal: Terminal) -> None:
    assert terminal.run("context", "list").code == 0
    made = terminal.run("context", "create", "lab", "lab.example:8400")
    assert (made.code, made.out) == (0, "lab is http://lab.example:8400, and is in use\n")
    assert terminal.run("context", "create", "home", "http://127.0.0.1:9").code == 0
    assert terminal.run("context", "show").out == "http://127.0.0.1:9 (context home)\n"
    assert terminal.run("context", "use", "lab").code == 0
    assert terminal.run("context", "list", "--json").json == {
        "contexts": [
            {"name": "home", "current": False, "server": "http://127.0.0.1:9", "tokenFile": ""},
            {"name": "lab", "current": True, "server": "http://lab.example:8400", "tokenFile": ""},
        ]
    }
    unknown = terminal.run("context", "use", "moon")
    assert unknown.code == 2
    assert "there are: home, lab" in unknown.err
    assert terminal.run("context", "use", "-").code == 0
    assert terminal.run("context", "show").code == 3
