"""A run whose output nobody can take: the folder is complete all the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lgf.runs.folder import read_run

ORDER = ["discover", "duffing", "--evaluations", "25", "--out", "run"]


def gone():
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full here")
@pytest.mark.parametrize(("output", "code"), [(gone, 1), (lambda: os.open("/dev/full", os.O_WRONLY), 2)])
def test_what_cannot_be_printed_is_written(tmp_path, output, code):
    handle = output()
    process = subprocess.run(
        [sys.executable, "-c", "import sys; from lgf.cli import main; sys.exit(main())", *ORDER],
        cwd=tmp_path, stdout=handle, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(handle)
    assert process.returncode == code, process.stderr
    assert "Traceback" not in process.stderr
    assert read_run(tmp_path / "run").evaluations == 25
    assert (tmp_path / "run/report.html").is_file()
