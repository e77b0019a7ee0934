"""The code of README and the examples work."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

import pytest
from conftest import ANSWER, SOURCES, model_path

FOLDER = Path(SOURCES, "python")


def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (FOLDER / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    shutil.copy(model_path(), tmp_path / "model.cria")
    shutil.copy(os.environ["CRIA_TEST_TOOLS_MODEL"], tmp_path / "qwen3.cria")
    monkeypatch.chdir(tmp_path)
    names: Dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    output = capsys.readouterr().out
    assert output.startswith(ANSWER) and "at most" in output and "Goodbye" in output


def test_extract_fields() -> None:
    done = subprocess.run([sys.executable, str(FOLDER / "examples" / "extract_fields.py"), model_path()],
                          stdout=subprocess.PIPE, text=True, check=True, env=os.environ)
    header, *rows = done.stdout.splitlines()
    assert header.split() == ["customer", "kind", "order", "urgent"] and len(rows) == 10
    for row in rows:
        assert re.fullmatch(r".{30,}  (complaint|question|praise|purchase) *  +(-|\d+)  (yes|no)", row), row
    failed = subprocess.run([sys.executable, str(FOLDER / "examples" / "extract_fields.py"), "/nowhere"],
                            stderr=subprocess.PIPE, text=True, check=False)
    assert failed.returncode == 1 and failed.stderr == "/nowhere: cannot open: No such file or directory\n"
