"""The tree itself: sizes, names, rooms, links, and what must never be written down."""

import re
import statistics
import tomllib
from pathlib import Path

import pytest

from logyard_domain.codec import TAGS

ROOT = Path(__file__).parents[1]
ROOMS = {
    "domain": ("logyard_domain",),
    "workflows-dsl": ("logyard_workflows_dsl",),
    "projections": ("logyard_projections",),
    "engine": ("logyard_engine",),
    "api": ("logyard_api", "logyard"),
}
LINES_MAX = 500
CASES_LINES_MAX = 750
"""For tests: a table of cases belongs on one page."""
BANNED = {"utils", "util", "common", "helpers", "models", "types", "base", "manager", "misc"}
IGNORED = {
    ".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "__pycache__",
    ".import_linter_cache", "demo-out", "bench-out", "build", "dist",
}  # fmt: skip
TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".lock", ".txt", ".json", ".cfg", ".ini", ""}


def _files() -> list[Path]:
    found: list[Path] = []
    folders = [ROOT]
    while folders:
        for path in folders.pop().iterdir():
            if path.name in IGNORED or path.is_symlink():
                continue
            if path.is_dir():
                folders.append(path)
            elif path.suffix in TEXT:
                found.append(path)
    return sorted(found)


FILES = _files()
MODULES = [path for path in FILES if path.suffix == ".py"]
SHIPPED = [path for path in MODULES if path.relative_to(ROOT).parts[0] in ROOMS]
PAGES = [path for path in FILES if path.suffix == ".md"]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_module_is_larger_than_one_sitting() -> None:
    too_large = {
        _name(path): _lines(path)
        for path in MODULES
        if _lines(path) > (LINES_MAX if path in SHIPPED else CASES_LINES_MAX)
    }
    assert not too_large


def test_modules_are_small_in_the_middle() -> None:
    sizes = [_lines(path) for path in SHIPPED if path.name != "__init__.py"]
    median = statistics.median(sizes)
    print(f"{len(sizes)} modules, median {median:g} lines, largest {max(sizes)}")
    assert median <= 250


def test_no_module_has_an_empty_name() -> None:
    assert not [_name(path) for path in SHIPPED if path.stem in BANNED]


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_its_package_and_its_page(room: str) -> None:
    for package in ROOMS[room]:
        assert (ROOT / room / package / "__init__.py").is_file()
        assert (ROOT / room / package / "py.typed").is_file()
    assert not (ROOT / room / "__init__.py").exists()
    page = ROOT / room / "README.md"
    assert page.is_file()
    assert 5 <= _lines(page) <= 80


def test_the_settings_name_every_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = {f"{room}/{package}" for room, held in ROOMS.items() for package in held}
    assert set(settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == packages
    assert set(settings["tool"]["hatch"]["build"]["dev-mode-dirs"]) == set(ROOMS)


def test_every_module_says_what_it_is() -> None:
    silent = [
        _name(path)
        for path in SHIPPED
        if path.read_text(encoding="utf-8").lstrip()[:3] != '"""' and path.stat().st_size > 0
    ]
    assert not silent


def test_no_host_of_a_registry_is_written_down() -> None:
    hosts = re.compile(
        r"\b(?:[\w-]+\.)*(?:pypi|pythonhosted|npmjs|crates|rubygems|conda|anaconda)\.(?:org|io|com)\b"
        r"|--(?:extra-)?index-url\s+\S|https?://[^\s/]*(?:artifactory|nexus)[^\s/]*"
    )
    found = {
        _name(path): hit.group()
        for path in FILES
        if path != Path(__file__) and (hit := hosts.search(path.read_text(encoding="utf-8")))
    }
    assert not found


def test_the_lock_pins_every_package_with_hashes() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ")
    pins = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    assert len(pins) > 20
    assert not [line for line in pins if "==" not in line or "--hash=sha256:" not in line]


def test_no_work_is_left_undone_in_words() -> None:
    words = re.compile(r"\b(?:TODO|FIXME|XXX|NotImplementedError)\b")
    found = [
        f"{_name(path)}: {hit.group()}"
        for path in SHIPPED
        if (hit := words.search(path.read_text(encoding="utf-8")))
    ]
    assert not found


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    broken: list[str] = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        if not path.exists() or (anchor and anchor not in _anchors(path)):
            broken.append(target)
    assert not broken


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_dependency_is_explained() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = settings["project"]["dependencies"] + settings["dependency-groups"]["dev"]
    names = {re.split(r"[\[<>=;~! ]", entry)[0] for entry in wanted}
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    assert not {name for name in names if f"`{name}" not in page}


def test_every_event_is_documented() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert not {tag for tag in TAGS if f"`{tag}`" not in pages}


def test_every_make_target_is_listed_and_used_by_ci() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test", "bench", "check", "help", "clean"):
        assert re.search(rf"^{target}:.*## ", makefile, flags=re.MULTILINE), target
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "set -euo pipefail" in ci
    assert re.search(r"^(?:exec )?make test$", ci, flags=re.MULTILINE)
