"""The calls of the page: tables, the check, results, downloads, trials, and what spoils them."""

import json
import os
import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest

import lgf.app.uploads
from lgf.expression.mathml import TAGS
from lgf.runs.folder import write_run

DECAY = b"t,u\n" + b"".join(f"{t:.3f},{2 * np.exp(-0.5 * t):.5f}\n".encode() for t in np.linspace(0, 6, 60))


def add(site, content, name="table.csv"):
    return site.client.call("POST", f"/api/data?name={name}", content)


def roles(*texts):
    pairs = (text.partition(" ") for text in texts)
    return [{"role": role, "derivative": int(derivative) if derivative else None} for role, _, derivative in pairs]


def test_the_roles_are_guessed_and_can_be_changed(site):
    table = b"time,load,position,acc,note\n" + b"".join(b"%d,%d,%d,%d,x\n" % (i, i % 3, i * i, i) for i in range(30))
    id = add(site, table).json["id"]
    facts = site.client.post(f"/api/data/{id}/check").json
    assert [c["role"] for c in facts["table"]["columns"]] == ["time", "input", "value", "value", "unused"]
    assert [c["variable"] for c in facts["table"]["columns"]] == [None, None, "u", "u''", None]
    assert facts["problem"]["experiments"][0]["columns"].keys() == {"u", "u''"}
    assert len(facts["table"]["rows"]) == 20
    form = {"columns": roles("time", "unused", "value", "unused", "unused")}
    changed = site.client.post(f"/api/data/{id}/check", form).json
    assert changed["error"] is None
    assert changed["problem"]["inputs"] == []  # a column that is not used is not guessed again
    assert changed["problem"]["variables"] == ["u", "u'"]


def test_derivatives_follow_names_or_the_user(site):
    table = b"t,x,v,y,w\n" + b"".join(b"%d,%d,%d,%d,%d\n" % (i, i * i, 2 * i, i % 5, i % 7) for i in range(30))
    id = add(site, table).json["id"]

    def taken(*texts):
        facts = site.client.post(f"/api/data/{id}/check", {"columns": roles(*texts)}).json
        return [c["variable"] for c in facts["table"]["columns"]], facts["error"]

    assert taken("time", "value", "value", "unused", "unused") == ([None, "u", "u'", None, None], None)
    assert taken("time", "value", "value 2", "unused", "unused") == ([None, "u", "u''", None, None], None)
    assert taken("time", "value", "unused", "value", "unused") == ([None, "x", None, "y", None], None)
    assert taken("time", "value", "unused", "value", "value 1")[0] == [None, "x", None, "y", "w'"]


def test_columns_of_wells_are_experiments_and_days_go_with_their_clock(site):
    names = [f"A{k}" for k in range(1, 9)]
    rows = [
        f"2026-05-03,8:{i:02d}:00," + ",".join(f"{1 - 2.7 ** -(i / (9 + k)):.4f}" for k in range(8)) for i in range(30)
    ]
    id = add(site, "\n".join([",".join(["date", "time", *names]), *rows]).encode()).json["id"]
    facts = site.client.post(f"/api/data/{id}/check").json
    assert [c["role"] for c in facts["table"]["columns"]] == ["time", "time", *["replicate"] * 8]
    assert facts["problem"]["n_experiments"] == 8
    assert facts["problem"]["experiments"][0]["t"][:3] == [0.0, 1.0, 2.0]
    form = {"columns": roles("time", "time", "value", *["unused"] * 7)}
    assert site.client.post(f"/api/data/{id}/check", form).json["problem"]["n_experiments"] == 1
    form = {"columns": roles("time", "time", "value", *["replicate"] * 7)}
    assert site.client.post(f"/api/data/{id}/check", form).json["error"].startswith("Some measured columns are states")


def test_two_columns_may_name_the_experiments(site):
    rows = [f"{p},{w},{i},{1 - 2.7 ** -(i / (5 + w)):.4f}" for p in "AB" for w in (1, 2) for i in range(20)]
    id = add(site, "\n".join(["plate,well,t,od", *rows]).encode()).json["id"]
    facts = site.client.post(f"/api/data/{id}/check").json
    assert [c["role"] for c in facts["table"]["columns"]] == ["experiment", "experiment", "time", "value"]
    form = {"columns": roles("experiment", "experiment", "time", "value")}
    facts = site.client.post(f"/api/data/{id}/check", form).json
    assert [e["name"] for e in facts["problem"]["experiments"]] == ["A/1", "A/2", "B/1", "B/2"]


@pytest.mark.parametrize(("columns", "sentence"), [
    (("value", "value"), "No column is the time; choose one."),
    (("time", "unused"), "No column is measured; choose at least one."),
    (("unused", "unused"), "No column has a role; choose the column of the times and one that was measured."),
    (("time", "time"), "2 columns are said to hold the times; choose one."),
    (("time",), "table.csv has 2 columns; say what each of them is."),
])  # fmt: skip
def test_roles_that_cannot_be_are_answered_in_a_sentence(site, columns, sentence):
    id = add(site, DECAY).json["id"]
    assert site.client.post(f"/api/data/{id}/check", {"columns": roles(*columns)}).json["error"] == sentence
    answer = site.client.post("/api/runs", {"data": id, "form": {"columns": roles(*columns)}})
    assert (answer.status, answer.json["error"]) == (422, sentence)
    assert not any(p.name != ".uploads" for p in site.runs.iterdir())


@pytest.mark.parametrize(("content", "words"), [
    (b"", "bad.csv is empty"),
    (b"\x89PNG\r\n\x1a\n\0\0\0", "bad.csv is a binary file"),
    (b"t,u\n", "bad.csv has a header but no rows"),
    (b"t,u\n0,1\n1,2,3\n", "line 3 of bad.csv has 3 cells"),
    (b"\xff\xfe\xff", "bad.csv is not utf-16 text"),
    (b"a" * 200_000, "bad.csv has a line of 200,000 characters"),
])  # fmt: skip
def test_a_file_that_is_no_table_is_answered_in_a_sentence_and_not_stored(site, content, words):
    answer = add(site, content, "bad.csv")
    assert answer.status == 422
    assert answer.json["error"].startswith(words)
    assert "data.csv" not in answer.json["error"]
    assert list((site.runs / ".uploads").iterdir()) == []


def test_a_table_without_times_can_be_looked_at(site):
    id = add(site, b"a,b\n" + b"2,1\n1,2\n" * 20).json["id"]
    facts = site.client.post(f"/api/data/{id}/check").json
    assert "looks like time" in facts["error"]
    assert [c["role"] for c in facts["table"]["columns"]] == ["unused", "unused"]


def test_a_file_that_is_too_large_is_cut_off(site, monkeypatch):
    monkeypatch.setattr(lgf.app.uploads, "MOST_BYTES", 1_000_000)
    answer = add(site, b"1,2\n" * 400_000)
    assert (answer.status, answer.json["error"][:29]) == (422, "The file has more than 1 MB; ")
    assert list((site.runs / ".uploads").iterdir()) == []
    assert site.client.post("/api/runs", {"data": "x" * 2_000_000}).status == 413


def test_only_the_newest_tables_stay(site, monkeypatch):
    monkeypatch.setattr(lgf.app.uploads, "MOST_UPLOADS", 2)
    ids = [add(site, DECAY).json["id"] for _ in range(4)]
    for k, id in enumerate(ids):
        os.utime(site.runs / ".uploads" / id, (k, k)) if (site.runs / ".uploads" / id).exists() else None
    assert len(list((site.runs / ".uploads").iterdir())) == 2
    answer = site.client.get(f"/api/data/{ids[0]}")
    assert (answer.status, answer.json["error"]) == (422, "This table is not here any more; drop the file again.")


@pytest.mark.parametrize("id", ["..", "%2e%2e", "..%2f..", "%00", "0123456789abcdef", "a" * 300])
def test_the_id_of_a_table_is_no_path(site, id):
    (site.folder / "upload.json").write_text('{"name": "secret", "form": {}}')
    answer = site.client.get(f"/api/data/{id}")
    assert answer.status in (404, 422)
    assert b"secret" not in answer.body


def test_a_hostile_name_is_shortened_to_a_name(site):
    hostile = "%3Cimg%20src=x%20onerror=alert(1)%3E.csv"
    named = {hostile: "<img src=x onerror=alert(1)>.csv", "..%2F..%2Fetc%2Fpasswd": "passwd", "a%0Ab%00": "ab"}
    for sent, name in named.items():
        assert add(site, DECAY, sent).json["name"] == name
    id = add(site, DECAY, hostile).json["id"]
    form = {"columns": roles("time", "value"), "evaluations": 5, "seconds": 1}
    run = site.client.post("/api/runs", {"data": id, "form": form}).json["run"]
    assert run == "img-src-x-onerror-alert-1"
    assert (site.runs / run / "run.json").is_file()
    site.client.post(f"/api/runs/{run}/stop")


@pytest.mark.parametrize(("form", "words"), [
    ({"order": 9}, "order is 9"),
    ({"order": "two"}, "The answer for order cannot be used"),
    ({"nonsense": 1}, "The answer for nonsense cannot be used"),
    ({"seconds": -1}, "The answer for seconds cannot be used"),
    ({"required": ["import os"]}, "the term"),
    ({"inputs": [{"formula": "__import__('os')"}]}, "the forcing"),
    ({"start": ["u' = eval(u)"]}, "the equation"),
    ({"bounds": [{"term": "u", "limits": "sometimes"}]}, "the bounds of"),
    ({"columns": [{"role": "king"}]}, "The answer for columns 0 role cannot be used"),
])  # fmt: skip
def test_answers_that_cannot_be_used_are_answered_in_a_sentence(site, form, words):
    id = add(site, DECAY).json["id"]
    answer = site.client.post("/api/runs", {"data": id, "form": {"columns": roles("time", "value"), **form}})
    assert answer.status == 422
    assert answer.json["error"].startswith(words), answer.json["error"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"[" * 100_000, b"null", b'"x"', b"\xff"])
def test_a_call_that_is_not_json_is_refused(site, body):
    assert site.client.call("POST", "/api/runs", body).status == 422


def test_an_example_comes_with_its_answers(site):
    for record in site.client.get("/api/records").json:
        id = site.client.post(f"/api/data?record={record['name']}").json["id"]
        described = site.client.get(f"/api/data/{id}").json
        facts = site.client.post(f"/api/data/{id}/check", described["form"]).json
        assert facts["error"] is None
        assert all(f["severity"] != "error" for f in facts["findings"])
    assert site.client.post("/api/data?record=../secret").status == 422


def tags(tree):
    yield tree[0]
    for child in tree[1:]:
        if not isinstance(child, str):
            yield from tags(child)


@pytest.mark.parametrize("name", ["duffing", "decay", "rabbits"])
def test_a_result_has_all_that_the_page_shows(shelf, name):
    facts = shelf.client.get(f"/api/runs/{name}").json
    view = facts["view"]
    assert facts["state"] == "finished"
    chosen = [e for e in view["equations"] if e["chosen"]]
    assert len(chosen) == 1
    assert chosen[0]["text"] == facts["result"]["text"]
    for equation in view["equations"]:
        assert set(tags(equation["math"])) <= TAGS
        assert len(equation["constants"]) == len({c["term"] for c in equation["constants"]}) or len(chosen) == 1
    states = view["problem"]["states"]
    number = view["equations"].index(chosen[0])
    for experiment, shown in enumerate(view["problem"]["experiments"]):
        curve = shelf.client.get(f"/api/runs/{name}/curve?equation={number}&experiment={experiment}").json
        assert set(shown["columns"]) <= set(curve["columns"])
        assert set(states) <= set(curve["columns"])
        assert None not in curve["columns"][states[0]]
        assert curve["residuals"]["columns"].keys() == shown["columns"].keys()
    assert facts["files"] == ["equation.tex", "equation.py", "equation.json", "front.csv", "report.html"]


def test_a_trial_without_changes_is_the_curve_of_the_result(shelf):
    for name in ("duffing", "decay", "rabbits"):
        view = shelf.client.get(f"/api/runs/{name}").json["view"]
        number = next(k for k, e in enumerate(view["equations"]) if e["chosen"])
        state = view["problem"]["states"][0]
        curve = shelf.client.get(f"/api/runs/{name}/curve?equation={number}&experiment=0").json
        trial = shelf.client.post(f"/api/runs/{name}/simulate", {"equation": number}).json
        expected = np.interp(trial["t"], curve["t"], curve["columns"][state])
        size = np.max(np.abs(expected))
        assert np.allclose(trial["columns"][state], expected, atol=2e-3 * size)
        constants = [2 * c["value"] for c in view["equations"][number]["constants"]]
        moved = shelf.client.post(f"/api/runs/{name}/simulate", {"equation": number, "constants": constants}).json
        assert moved["columns"][state] != trial["columns"][state]


def test_the_next_experiment_is_suggested(shelf):
    facts = shelf.client.post("/api/runs/duffing/suggest").json
    assert facts["sentence"].startswith("Start at u = ")
    assert facts["measured"] == ["u''"]
    assert len(facts["predictions"]) >= 2
    assert all("u''" in p["columns"] for p in facts["predictions"])


@pytest.mark.parametrize(("trial", "words"), [
    ({"equation": 99}, "There is no such equation"),
    ({"equation": 0, "experiment": 99}, "There is no such equation"),
    ({"equation": -1}, "The answer for equation cannot be used"),
    ({"equation": 0, "n": 5_000}, "The answer for n cannot be used"),
    ({"equation": 0, "end": -1}, "The end is -1"),
    ({"equation": 0, "end": "NaN"}, "The answer for end cannot be used"),
    ({"equation": 0, "initial": {"u": 1, "v": 2}}, "'v' is not known here"),
    ({"equation": 0, "constants": [1] * 50}, "The equation has"),
    ({"equation": 0, "inputs": {"F": "os.system(1)"}}, "the forcing"),
    ({"equation": 0, "files": "x"}, "The answer for files cannot be used"),
])  # fmt: skip
def test_a_trial_that_cannot_be_is_answered_in_a_sentence(shelf, trial, words):
    answer = shelf.client.post("/api/runs/duffing/simulate", trial)
    assert answer.status == 422
    assert answer.json["error"].startswith(words), answer.json["error"]


def test_a_trial_that_is_too_fast_or_explodes_ends(shelf):
    view = shelf.client.get("/api/runs/duffing").json["view"]
    number = next(k for k, e in enumerate(view["equations"]) if e["chosen"])
    constants = [c["value"] for c in view["equations"][number]["constants"]]
    fast = [v * 1e12 if k > 1 else v for k, v in enumerate(constants)]
    growing = [-v if k else v for k, v in enumerate(constants)]
    for values in (fast, growing):
        trial = {"equation": number, "constants": values, "initial": {"u": 100.0, "u'": 0.0}}
        facts = shelf.client.post("/api/runs/duffing/simulate", trial).json
        assert facts["sentence"].startswith("The curve ends early")
        assert None in facts["columns"]["u"]


def test_downloads_are_the_files_of_the_run_and_no_others(shelf):
    folder = shelf.runs / "duffing"
    for name in ("equation.tex", "equation.py", "equation.json", "front.csv"):
        answer = shelf.client.get(f"/api/runs/duffing/files/{name}")
        assert answer.body == (folder / name).read_bytes()
        assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''duffing-{name}"
    for name in ("run.json", "candidates.jsonl", "..%2Frun.json", "%2e%2e%2frun.json", "progress.json", ".", "x"):
        assert shelf.client.get(f"/api/runs/duffing/files/{name}").status in (404, 422), name
    table = shelf.client.get("/api/runs/rabbits/data.csv").body.decode().splitlines()
    assert table[0] == "experiment,t,prey,predator"
    assert len(table) == 82


def test_a_report_of_a_stranger_is_shown_in_a_sandbox(shelf):
    (shelf.runs / "duffing/report.html").write_text("<script>alert(document.cookie)</script>")
    policy = shelf.client.get("/api/runs/duffing/files/report.html").headers["content-security-policy"]
    assert policy.startswith("sandbox;")
    assert "allow-scripts" not in policy
    assert "default-src 'none'" in policy


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="there are no links here")
def test_links_are_not_followed(shelf, tmp_path_factory, decay):
    outside = tmp_path_factory.mktemp("outside")
    write_run(decay, outside / "run")
    (outside / "secret.txt").write_text("secret")
    (shelf.runs / "linked").symlink_to(outside / "run")
    for path in ("", "/curve", "/data.csv", "/files/equation.tex"):
        assert shelf.client.get(f"/api/runs/linked{path}").status == 422
    assert all(row["run"] != "linked" for row in shelf.client.get("/api/runs").json)
    for name in ("equation.tex", "report.html"):
        (shelf.runs / "duffing" / name).unlink()
        (shelf.runs / "duffing" / name).symlink_to(outside / "secret.txt")
        answer = shelf.client.get(f"/api/runs/duffing/files/{name}")
        assert answer.status == 422
        assert b"secret" not in answer.body
    (shelf.runs / "decay/equation.json").unlink()
    (shelf.runs / "decay/equation.json").symlink_to(outside / "run/equation.json")
    assert shelf.client.get("/api/runs/decay").json["result"] is None


@pytest.mark.parametrize("name", ["..", "%2e%2e", "%2e%2e%2f%2e%2e", ".uploads", "%00", "a" * 500, "CON", "~root"])
def test_the_name_of_a_run_is_no_path(site, name):
    for method, rest in (("GET", ""), ("POST", "/stop"), ("POST", "/resume"), ("GET", "/files/equation.tex")):
        assert site.client.call(method, f"/api/runs/{name}{rest}", b"{}").status in (404, 405, 422)


def test_damaged_runs_do_not_spoil_the_list(shelf):
    (shelf.runs / "decay/equation.json").write_text("{")
    (shelf.runs / "duffing/progress.json").write_text("[[[")
    (shelf.runs / "rabbits/run.json").write_text("{}")
    rows = {row["run"]: row for row in shelf.client.get("/api/runs").json}
    assert rows["decay"]["result"] is None
    assert rows["duffing"]["result"] is not None
    answer = shelf.client.get("/api/runs/rabbits")
    assert (answer.status, "start the run anew" in answer.json["error"]) == (422, True)


def test_the_page_is_light_and_comes_from_here_alone(site):
    import gzip
    import re

    static = files("lgf.app").joinpath("static")
    names = ["index.html", "app.css", *(f"screens/{p.name}" for p in static.joinpath("screens").iterdir())]
    names += [p.name for p in static.iterdir() if p.name.endswith(".js")]
    names += ["vendor/uPlot.iife.min.js", "vendor/uPlot.min.css"]
    weight = 0
    for name in names:
        answer = site.client.get(f"/{name}")
        assert answer.status == 200, name
        weight += len(gzip.compress(answer.body))
        text = answer.body.decode()
        found = set(re.findall(r"https?://[\w.-]+", text)) - {"http://www.w3.org", "https://github.com"}
        assert found == set(), (name, found)
        if not name.startswith("vendor/"):
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
                assert word not in text, (name, word)
    assert weight < 100_000
    assert "MIT License" in static.joinpath("vendor/uPlot.LICENSE").read_text()


def test_the_server_does_not_load_torch():
    program = "import sys, lgf.app.server; sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_without_its_packages_one_sentence_says_what_to_install(monkeypatch, capsys):
    from lgf.cli import main

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "lgf.app.server", raising=False)
    assert main(["app", "--no-browser"]) == 2
    assert "pip install 'latent-grammar-flow[app]'" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_answered_in_a_sentence(capsys):
    from lgf.cli import main

    assert main(["app", "--no-browser", "nowhere"]) == 2
    assert (
        capsys.readouterr().err == "lgf: nowhere is not a folder; name the folder that holds, or will hold, the runs.\n"
    )


def test_the_form_of_a_run_starts_the_next(site):
    id = add(site, DECAY, "fall.csv").json["id"]
    form = {"columns": roles("time", "value"), "order": 1, "evaluations": 5, "seconds": 1}
    run = site.client.post("/api/runs", {"data": id, "form": form}).json["run"]
    again = site.client.post(f"/api/runs/{run}/again").json
    described = site.client.get(f"/api/data/{again['id']}").json
    assert (again["name"], described["form"]["order"]) == ("fall.csv", 1)
    assert json.loads((site.runs / run / "form.json").read_text())["name"] == "fall.csv"
    site.client.post(f"/api/runs/{run}/stop")
