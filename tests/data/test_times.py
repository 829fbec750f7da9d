"""Dates and clocks as loggers and people write them."""

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from lgf.data import observations_from_arrays, read_observations
from lgf.data.array_times import time_scale, times_as_numbers
from lgf.errors import LgfError

U = [1.0, 2.0, 4.0, 8.0]


def times(cells, unit="s"):
    (observation,) = read_observations({"time": cells, "u": U}, units={"t": unit}).observations
    return observation.t.tolist()


@pytest.mark.parametrize("cells", [
    ["2026-05-03 08:00:00", "2026-05-03 08:00:30", "2026-05-03 20:00:00", "2026-05-04 08:00:00"],
    ["2026-05-03T08:00:00", "2026-05-03T08:00:30", "2026-05-03T20:00:00", "2026-05-04T08:00:00"],
    ["2026-05-03T08:00:00Z", "2026-05-03T08:00:30Z", "2026-05-03T20:00:00Z", "2026-05-04T08:00:00Z"],
    ["2026-05-03 08:00:00+02:00", "2026-05-03 08:00:30+02:00", "2026-05-03T19:00:00+01:00", "2026-05-04 06:00:00Z"],
    ["03.05.2026 08:00:00", "03.05.2026 08:00:30", "03.05.2026 20:00:00", "04.05.2026 08:00:00"],
    ["3.5.2026 8:00:00,0", "3.5.2026 8:00:30,0", "3.5.2026 20:00:00,0", "4.5.2026 8:00:00,0"],
    ["13/05/2026 08:00:00", "13/05/2026 08:00:30", "13/05/2026 20:00:00", "14/05/2026 08:00:00"],
    ["5/13/2026 8:00:00 AM", "5/13/2026 8:00:30 AM", "5/13/2026 8:00:00 PM", "5/14/2026 8:00:00 AM"],
    ["13/05/26 08:00:00", "13/05/26 08:00:30", "13/05/26 20:00:00", "14/05/26 08:00:00"],
    ["31-03-26 08:00:00", "31-03-26 08:00:30", "31-03-26 20:00:00", "01-04-26 08:00:00"],
    ["26-05-31 08:00:00", "26-05-31 08:00:30", "26-05-31 20:00:00", "26-06-01 08:00:00"],
    ["2026/5/3 08:00:00", "2026/05/03 08:00:30", "2026/05/03 20:00:00", "2026/05/04 08:00:00"],
    ["2026-05-03 08:00:00,0", "2026-05-03 08:00:30,0", "2026-05-03 20:00:00,0", "2026-05-04 08:00:00,0"],
    ["03-May-2026 08:00:00", "03-May-2026 08:00:30", "03-May-2026 20:00:00", "04-May-2026 08:00:00"],
    ["3 May 26 08:00", "3 May 26 08:00:30", "3 May 26 20:00", "4 May 26 08:00"],
    ["May 3, 2026 8:00:00 AM", "May 3, 2026 8:00:30 AM", "May 3, 2026 8:00:00 PM", "May 4, 2026 8:00:00 AM"],
    ["03/May/2026:08:00:00", "03/May/2026:08:00:30", "03/May/2026:20:00:00", "04/May/2026:08:00:00"],
    ["20260503T080000", "20260503T080030", "20260503T200000", "20260504T080000"],
    [20260503080000, 20260503080030, 20260503200000, 20260504080000],
    [1777795200, 1777795230, 1777838400, 1777881600],
    ["12-31-2026, 8:00:00 am", "12-31-2026, 8:00:30 am", "12-31-2026, 8:00:00 pm", "01-01-2027, 8:00:00 am"],
])  # fmt: skip
def test_the_same_times_in_many_spellings(cells):
    assert times(cells) == [0.0, 30.0, 43_200.0, 86_400.0]


def test_days_without_marks_are_dates_and_not_numbers():
    assert times([20260228, 20260301, 20260302, 20260303]) == [0.0, 86_400.0, 172_800.0, 259_200.0]
    assert times([20260228, 20260229, 20260230, 20260231], "") == [20260228, 20260229, 20260230, 20260231]


@pytest.mark.parametrize(("step", "unit", "t"), [
    (timedelta(days=365), "year", 365 / 365.25), (timedelta(days=30), "day", 30.0), (timedelta(days=1), "day", 1.0),
    (timedelta(hours=6), "hour", 6.0), (timedelta(minutes=15), "minute", 15.0), (timedelta(seconds=30), "second", 30.0),
    (timedelta(milliseconds=20), "second", 0.02),
])  # fmt: skip
def test_dates_count_in_the_largest_unit_below_their_usual_step(step, unit, t):
    dates = [str(datetime(2026, 3, 5) + k * step) for k in range(4)]
    reading = read_observations({"time": dates, "u": U})
    assert reading.observations[0].t.tolist() == pytest.approx([0.0, t, 2 * t, 3 * t])
    assert reading.units == {"t": unit}
    assert f"The times in 'time' are dates; t counts {unit}s from the first one." in reading.notes


def test_dates_count_in_the_unit_that_is_asked_for():
    daily = ["2026-03-05", "2026-03-06", "2026-03-07", "2026-03-08"]
    assert times(daily, "h") == pytest.approx([0.0, 24.0, 48.0, 72.0])
    reading = read_observations({"time [min]": daily, "u": U})
    assert reading.observations[0].t.tolist() == pytest.approx([0.0, 1440.0, 2880.0, 4320.0])
    assert reading.units == {"t": "min"}
    with pytest.raises(LgfError, match="are dates, but the unit of t is 'm'; give a unit of time"):
        times(daily, "m")


def test_a_clock_goes_on_past_midnight():
    reading = read_observations({"time": ["23:59:00", "23:59:30", "00:00:00", "00:01:00"], "u": U})
    assert reading.observations[0].t.tolist() == [86_340.0, 86_370.0, 86_400.0, 86_460.0]
    assert reading.units == {"t": "second"}
    assert any("goes on past midnight" in note for note in reading.notes)
    with pytest.raises(LgfError, match="time goes back from 10:00:00 to 0:00:00"):
        times(["9:00:00", "10:00:00", "0:00:00", "1:00:00"])


def test_a_row_without_a_date_and_without_values_is_left_out():
    table = {"time": ["3.5.2026", "4.5.2026", "5.5.2026", ""], "u": [1.0, 2.0, 4.0, ""]}
    assert read_observations(table).observations[0].t.tolist() == [0.0, 1.0, 2.0]


def test_short_years_that_may_be_days_are_an_error():
    with pytest.raises(LgfError, match="may have the day, the month or the year first \\(05-03-06\\)"):
        times(["05-03-06", "06-03-06", "07-04-06", "08-05-06"])


def test_midnight_is_twelve_in_the_morning():
    assert times(["5/13/2026 12:00 AM", "5/13/2026 12:01 AM", "5/13/2026 12:00 PM", "5/13/2026 12:01 PM"]) == [
        0.0, 60.0, 43_200.0, 43_260.0
    ]  # fmt: skip


def test_dates_of_one_day_are_the_same_with_day_or_month_first():
    assert times([f"3/5/2026 08:00:{s}" for s in ("00", "01", "02.5", "03")]) == [0.0, 1.0, 2.5, 3.0]


@pytest.mark.parametrize(
    "clock", [["23:59:00", "23:59:30", "00:00:00", "00:01:00"], ["23:58", "23:59", "0:00", "0:30"]]
)
@pytest.mark.parametrize("day", ["2026-05-03 2026-05-04", "03-May-26 04-May-26", "2026/5/3 2026/5/4"])
@pytest.mark.parametrize("first", ["day", "clock"])
def test_days_and_the_time_of_day_may_stand_in_two_columns(clock, first, day):
    day = np.repeat(day.split(), 2)
    columns = {"date": day, "time": clock} if first == "day" else {"time": clock, "date": day}
    reading = read_observations({**columns, "u": U})
    expected = [0.0, 30.0, 60.0, 120.0] if len(clock[0]) == 8 else [0.0, 1.0, 2.0, 32.0]
    assert reading.units["t"] == ("second" if len(clock[0]) == 8 else "minute")
    assert reading.observations[0].t.tolist() == expected
    assert not any("Not used" in note for note in reading.notes)
    assert any("with the time of day in 'time'" in note for note in reading.notes)


def test_a_column_of_days_may_name_the_experiments_of_a_clock():
    day = np.repeat(["2026-05-03", "2026-05-04"], 4)
    table = {"day": day, "time": ["8:00:00", "8:00:10", "8:00:20", "8:00:30"] * 2, "u": U * 2}
    reading = read_observations(table, experiment="day")
    assert [o.name for o in reading.observations] == ["2026-05-03", "2026-05-04"]
    assert reading.observations[1].t.tolist() == [28_800.0, 28_810.0, 28_820.0, 28_830.0]


@pytest.mark.parametrize("t", [
    np.array([0, 1500, 3000, 4500], "m8[ms]"), pd.to_timedelta([0, 1.5, 3, 4.5], unit="s"),
    [timedelta(seconds=1.5 * k) for k in range(4)], np.array([[0], [1.5], [3], [4.5]]),
])  # fmt: skip
def test_durations_are_seconds_and_a_column_of_times_is_read(t):
    assert observations_from_arrays(t, np.array(U))[0].t.tolist() == [0.0, 1.5, 3.0, 4.5]


DAYS = pd.date_range("2026-01-01", periods=4, freq="D")
DATES = {
    "an index": (DAYS, "day"),
    "seconds": (pd.date_range("2026-01-01", periods=4, freq="s"), "second"),
    "hours of a zone": (pd.Series(pd.date_range("2026-03-28", periods=4, freq="h", tz="Europe/Zurich")), "hour"),
    "datetimes": (list(DAYS.to_pydatetime()), "day"),
    "datetimes of a zone": (list(DAYS.tz_localize("UTC").to_pydatetime()), "day"),
    "dates": ([day.date() for day in DAYS], "day"),
    "an array": (DAYS.to_numpy(), "day"),
    "texts": ([str(day)[:10] for day in DAYS], "day"),
    "a table": (pd.DataFrame({"when": DAYS}), "day"),
    "records": ([{"when": day} for day in DAYS], "day"),
    "periods": (pd.period_range("2026-01-01", periods=4, freq="D"), "day"),
    "years": (pd.Series(pd.period_range("2025", periods=4, freq="Y")), "year"),
    "durations": (pd.timedelta_range(0, periods=4, freq="h"), "hour"),
}


@pytest.mark.parametrize("name", DATES)
def test_dates_in_arrays_count_as_those_in_tables(name):
    t, unit = DATES[name]
    (one,) = observations_from_arrays(t, np.array(U))
    np.testing.assert_allclose(one.t, [0.0, 1.0, 2.0, 3.0], atol=0.01)
    if name in ("texts", "records"):
        return
    scale = time_scale([t, t])
    assert scale is not None
    assert scale.unit == unit
    for observation in observations_from_arrays([t, t], [np.array(U), np.array(U)]):
        assert observation.t.tolist() == one.t.tolist()


def test_experiments_count_from_the_first_date_of_all():
    first, second = observations_from_arrays([DAYS, DAYS + pd.Timedelta("10D")], [np.array(U)] * 2)
    assert (first.t[0], second.t[0]) == (0.0, 10.0)


def test_dates_in_arrays_count_in_the_unit_that_is_asked_for():
    scale = time_scale(DAYS, "h")
    assert times_as_numbers(DAYS, scale).tolist() == pytest.approx([0.0, 24.0, 48.0, 72.0])
    with pytest.raises(LgfError, match="t holds dates or durations, but the unit of t is 'kg'; give a unit of time"):
        time_scale(DAYS, "kg")


def test_dates_without_a_known_origin_and_of_two_kinds_are_told():
    with pytest.raises(LgfError, match=r"not known from which one .* the times since the first sample in 'second'\."):
        times_as_numbers(DAYS)
    with pytest.raises(LgfError, match="in one experiment and other times in another"):
        observations_from_arrays([DAYS, np.arange(4.0)], [np.array(U)] * 2)


def clock_numbers(first, n, step):
    """Hours and minutes as numbers, and the number of midnights before each, from `first` minutes on."""
    minutes = first + step * np.arange(n)
    return 100.0 * (minutes % 1440 // 60) + minutes % 60, minutes // 1440


def test_hours_and_minutes_as_numbers_are_a_clock_that_goes_on_past_midnight():
    clock, day = clock_numbers(570, 100, 10)
    warm = 37.0 + np.sin(np.arange(100) / 15)
    alone = read_observations({"rownames": np.arange(1.0, 101.0), "time": clock, "temp": warm})
    (observation,) = alone.observations
    np.testing.assert_allclose(observation.t, 570 + 10 * np.arange(100))
    assert alone.units["t"] == "minute"
    assert (
        "The times in 'time' are hours and minutes by their jumps at full hours (930 is 9:30); t counts minutes and "
        "goes on past midnight."
    ) in alone.notes
    beside = read_observations({"day": 307.0 + day, "time": clock, "temp": warm})
    (observation,) = beside.observations
    np.testing.assert_allclose(observation.t, 10 * np.arange(100))
    assert [str(v) for v in observation.columns] == ["u"]
    assert any("are days with hours and minutes in 'time' (930 is 9:30)" in note for note in beside.notes)
    named = read_observations({"day": 307.0 + day, "time": clock, "temp": warm}, experiment="day")
    assert [o.name for o in named.observations] == ["307", "308"]


def test_a_gap_in_a_clock_is_a_gap():
    clock, _ = clock_numbers(60, 200, 5)
    keep = np.r_[0:30, 36:200]
    (observation,) = read_observations({"time": clock[keep], "u": np.cos(np.arange(200) / 30)[keep]}).observations
    np.testing.assert_allclose(observation.t, (60 + 5 * np.arange(200))[keep])


@pytest.mark.parametrize("t", [
    np.arange(0.0, 500.0, 10.0), np.arange(0.0, 2300.0, 100.0), np.array([0.0, 5, 10, 20, 50, 100, 200, 500, 1000]),
    np.arange(50.0), np.arange(0.0, 60.0, 10.0), np.r_[0:60:10, 100:160:10], np.arange(0.5, 200.0, 10.0),
    np.arange(1900.0, 1960.0), np.arange(0.0, 2000.0, 25.0), np.arange(0.0, 2000.0, 50.0), np.arange(0.0, 1000.0, 20.0),
], ids=str)  # fmt: skip
def test_other_numbers_are_no_clock(t):
    reading = read_observations({"time": t, "u": np.cos(np.arange(len(t)) / 5)})
    assert reading.observations[0].t.tolist() == t.tolist()
    assert "t" not in reading.units


@pytest.mark.parametrize("name", ["time [s]", "minutes"])
def test_numbers_with_a_unit_are_no_clock(name):
    clock, _ = clock_numbers(0, 60, 10)
    assert read_observations({name: clock, "u": np.cos(np.arange(60) / 9)}).observations[0].t.tolist() == clock.tolist()
