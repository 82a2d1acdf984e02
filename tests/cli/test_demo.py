"""The demo that newcomers run, and everything that it checks itself."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_demo_is_as_it_should_be() -> None:
    picture = ROOT / "demo-out" / "mandelbrot.png"
    picture.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in done.stdout
    for shown in ("queue show", "workflow why", "events --tail", "log verify"):
        assert f"$ logyard {shown}" in done.stdout
