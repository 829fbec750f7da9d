"""kill -9 in the middle of a real run, in a process of its own; the run resumes to the same result."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lgf.cli import main

ORDER = ["discover", "duffing", "--evaluations", "120", "--json", "--out"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_killed_run_resumes_to_the_same_result(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; from lgf.cli import main; sys.exit(main())", *ORDER, "killed"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    journal = Path("killed/candidates.jsonl")
    while process.poll() is None and not (journal.exists() and journal.stat().st_size):
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "the run was over before it could be killed"
    assert not Path("killed/equation.json").exists()
    assert main(["discover", "--resume", "killed", "--json"]) == 0
    resumed = json.loads(capsys.readouterr().out)
    assert main([*ORDER, "whole"]) == 0
    whole = json.loads(capsys.readouterr().out)
    for facts in (resumed, whole):
        del facts["seconds"], facts["folder"]
    assert resumed == whole
    assert journal.read_bytes() == Path("whole/candidates.jsonl").read_bytes()
