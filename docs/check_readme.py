"""Runs every command and the Python of the README from a wheel in an empty environment: python docs/check_readme.py

The lines of make are left out, `pip install .` becomes the installation of the wheel, and searches get five seconds.
The first result of the README must be what its command prints now. Sizes and times are printed.
"""

import re
import resource
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


def first_result(text: str) -> list[str]:
    """The lines that the README says its first example prints, without the times."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return without_times(next(block for language, block in blocks if not language))


def without_times(printed: str) -> list[str]:
    """The lines of the output of a search, without its seconds and without the notes before the equation."""
    lines = [re.sub(r" in \d+ s,", " in _ s,", line.rstrip()) for line in printed.splitlines()]
    return [line for line in lines if line and not line.startswith(("note:", "compiling"))]


def programs(text: str) -> list[str]:
    """The blocks of Python of the README."""
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def processor_seconds() -> float:
    """The processor time of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
        begin = processor_seconds()
        run(scripts / "python", "-m", "pip", "install", "--quiet", str(wheel))
        size = sum(path.stat().st_size for path in (here / "env").rglob("*") if path.is_file())
        print(
            f"installed with all it needs: {size / 1e6:.0f} MB in {processor_seconds() - begin:.0f} processor seconds"
        )
        environment = {"PATH": f"{scripts}:/usr/bin:/bin", "HOME": folder}
        example = re.search(
            r"^\t\$\(LGF\) (discover .*)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
        )
        assert example is not None
        for which in ("first", "second"):
            begin = processor_seconds()
            searched = example[1].replace("--seconds 60 ", "")  # the same on a slow machine
            line = f"lgf {searched} --out {'runs/duffing' if which == 'first' else 'again'}"
            done = run("/bin/sh", "-c", f"{line} 2>&1", env=environment, stdout=subprocess.PIPE, text=True)
            print(f"the {which} discovery took {processor_seconds() - begin:.0f} processor seconds")
            if which == "first" and without_times(done.stdout) != first_result(text):
                sys.exit(f"the README shows another result than\n{done.stdout}")
        run(scripts / "python", "-c", _DATA)
        for line in commands(text):
            print(f"$ {line}", flush=True)
            run("/bin/sh", "-c", line, env=environment)
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
