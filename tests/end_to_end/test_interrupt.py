"""Ctrl-C, a closed terminal or a time limit at a process of its own, wherever it is then, in compiled kernels too."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer

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


@contextmanager
def _started(program, **options):
    """The process of the program; one that hangs is killed, so that no test waits for it for ever."""
    process = subprocess.Popen([sys.executable, "-c", program, *ORDER], **options)
    killer = Timer(300.0, process.kill)
    killer.start()
    try:
        yield process
    finally:
        killer.cancel()
        process.kill()
        process.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals to send here")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interruption_gives_the_best_so_far_and_a_run_to_resume(tmp_path, name, uninterrupted):
    # Whoever runs the tests may have the signal ignored, and a child inherits that.
    heard = "signal.default_int_handler" if name == "SIGINT" else "signal.SIG_DFL"
    program = f"import signal, sys; signal.signal(signal.{name}, {heard}); from lgf.cli import main; sys.exit(main())"
    journal = Path(tmp_path, "run/candidates.jsonl")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with _started(program, cwd=tmp_path, **pipes) as process:
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
    journal = Path(tmp_path, "run/candidates.jsonl")
    with _started(program, cwd=tmp_path, stdin=its, stdout=its, stderr=its, start_new_session=True) as process:
        os.close(its)
        os.set_blocking(ours, False)
        while process.poll() is None and not (journal.exists() and journal.stat().st_size):
            with suppress(BlockingIOError):
                os.read(ours, 65536)
            time.sleep(0.01)
        os.close(ours)
        assert process.wait() >= 0  # it ends by itself
    assert json.loads(Path(tmp_path, "run/equation.json").read_text())["interrupted"] is True
    assert Path(tmp_path, "run/report.html").is_file()
