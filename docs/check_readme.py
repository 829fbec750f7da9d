"""Runs every command and the Python of the README from a wheel in an empty environment: python docs/check_readme.py

The lines of make are left out, `pip install .` becomes the installation of the wheel, and searches get five seconds.
"""

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def commands(text: str) -> list[str]:
    """The lgf commands of the README, with a budget that fits a check."""
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    own = [line.split("  #")[0].strip() for line in lines if line.startswith("lgf ")]
    return [re.sub(r"--seconds \d+", "--seconds 5", line) for line in own]


def programs(text: str) -> list[str]:
    """The blocks of Python of the README."""
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def main() -> None:
    """Builds, installs and runs; the first failure ends it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        run = lambda *words, **options: subprocess.run(words, check=True, cwd=here, **options)  # noqa: E731
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "wheel", str(ROOT))
        venv.create(here / "env", with_pip=True)
        scripts = here / "env" / ("Scripts" if sys.platform == "win32" else "bin")
        (wheel,) = (here / "wheel").glob("*.whl")
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
        run(scripts / "python", "-m", "pip", "install", "--quiet", str(wheel))
        size = sum(path.stat().st_size for path in (here / "env").rglob("*") if path.is_file())
        print(f"installed with everything it needs: {size / 1e6:.0f} MB")
        run(scripts / "python", "-c", _DATA)
        for line in commands(text):
            print(f"$ {line}", flush=True)
            run("/bin/sh", "-c", line, env={"PATH": f"{scripts}:/usr/bin:/bin", "HOME": folder})
        for block in programs(text):
            (here / "program.py").write_text(block, encoding="utf-8")
            print("$ python program.py", flush=True)
            run(scripts / "python", "program.py")
    print("every line of the README runs")


_DATA = """
import pathlib, shutil
from importlib.resources import files
text = files("lgf.data").joinpath("records/duffing.csv").read_text().replace("t,acceleration", "t,acc")
pathlib.Path("data.csv").write_text(text)
pathlib.Path("plates").mkdir()
rows = [line.split(",") for line in files("lgf.data").joinpath("records/growth.csv").read_text().splitlines()[2:]]
for well in sorted({row[1] for row in rows})[:2]:
    body = "".join(f"{t},{u}\\n" for t, w, u in rows if w == well)
    pathlib.Path(f"plates/{well}.csv").write_text("t,u\\n" + body)
"""

if __name__ == "__main__":
    main()
