"""Ctrl-C, a closed terminal or a time limit at a process of its own, wherever it is then, in compiled kernels too."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from lgf.cli import main

ORDER = ["discover", "duffing", "--evaluations", "250", "--out", "run"]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted") / "run"
    assert main([*ORDER[:-1], str(folder)]) == 0
    return _answer(folder)


def _answer(folder):
    answer = json.loads((folder / "equation.json").read_text())
    return {name: value for name, value in answer.items() if name not in ("seconds", "history")}


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals to send here")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interruption_gives_the_best_so_far_and_a_run_to_resume(tmp_path, name, uninterrupted):
    # Whoever runs the tests may have the signal ignored, and a child inherits that.
    heard = "signal.default_int_handler" if name == "SIGINT" else "signal.SIG_DFL"
    program = f"import signal, sys; signal.signal(signal.{name}, {heard}); from lgf.cli import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *ORDER],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    journal = Path(tmp_path, "run/candidates.jsonl")
    while process.poll() is None and not (journal.exists() and journal.stat().st_size):
        time.sleep(0.01)
    process.send_signal(getattr(signal, name))
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert out.strip().endswith("= cos(2 t)")
    assert "Traceback" not in err
    assert "--resume run" in err
    answer = _answer(tmp_path / "run")
    assert answer["interrupted"] is True
    assert answer["evaluations"] < uninterrupted["evaluations"]
    assert main(["discover", "--resume", str(tmp_path / "run")]) == 0
    assert _answer(tmp_path / "run") == uninterrupted


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals here")
def test_a_terminal_closed_under_the_live_display(tmp_path):
    # The process gets the hang-up only from a terminal that is its own.
    program = (
        "import fcntl, signal, sys, termios; signal.signal(signal.SIGHUP, signal.SIG_DFL); "
        "fcntl.ioctl(0, termios.TIOCSCTTY, 0); from lgf.cli import main; sys.exit(main())"
    )
    ours, its = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", program, *ORDER], cwd=tmp_path, stdin=its, stdout=its, stderr=its, start_new_session=True
    )
    os.close(its)
    os.set_blocking(ours, False)
    journal = Path(tmp_path, "run/candidates.jsonl")
    while process.poll() is None and not (journal.exists() and journal.stat().st_size):
        with suppress(BlockingIOError):
            os.read(ours, 65536)
        time.sleep(0.01)
    os.close(ours)
    process.wait()
    assert json.loads(Path(tmp_path, "run/equation.json").read_text())["interrupted"] is True
    assert Path(tmp_path, "run/report.html").is_file()
