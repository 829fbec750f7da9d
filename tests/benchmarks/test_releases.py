import subprocess
import sys

import pytest
from benchmarks.__main__ import main
from benchmarks.releases import COMMITS, NOW, environment, tree
from benchmarks.surroundings import ROOT

from benchmarks import releases


def _imported(version: str, module: str, present: bool = False) -> str:
    code = f"import {module}; print({module}.__file__)"
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment(version, present), capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def _in_history(commit: str) -> bool:
    return subprocess.run(["git", "cat-file", "-e", commit], cwd=ROOT, capture_output=True).returncode == 0


@pytest.mark.skipif(not _in_history(COMMITS["0.2.0"]), reason="the clone is shallow")
def test_each_version_imports_its_own_package_and_benchmarks(tmp_path, monkeypatch):
    monkeypatch.setattr(releases, "FOLDER", tmp_path)
    for version in ("0.2.0", NOW):
        for module in ("lgf", "benchmarks.__main__"):
            assert _imported(version, module).startswith(str(tree(version)))
    assert '__version__ = "0.2.0"' in (tree("0.2.0") / "src/lgf/__init__.py").read_text()
    assert _imported("0.2.0", "benchmarks.__main__", present=True).startswith(str(tree(NOW)))
    assert _imported("0.2.0", "lgf", present=True).startswith(str(tree("0.2.0")))


def test_a_command_runs_by_each_version_and_an_unknown_version_is_refused(capfd):
    main(["release", NOW, "peers", "list"])
    assert "pysindy" in capfd.readouterr().out
    with pytest.raises(SystemExit, match="there is no version 7"):
        main(["release", "7", "peers", "list"])
