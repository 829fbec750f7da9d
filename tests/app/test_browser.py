"""The page in a real browser: from a dropped table to a downloaded equation, by mouse, by keyboard, and what fails."""

import functools
import http.server
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from tests.app.browser import AUDIT, DROP, REQUIRED, VIOLATIONS, chromium_path, launch, shoot

from lgf.equation.system import System
from lgf.runs.folder import read_run
from lgf.runs.progress import read_progress
from lgf.solver.solve import solve

if REQUIRED:
    import playwright.sync_api as playwright
else:
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")

expect = playwright.expect
expect.set_options(timeout=60_000)
PATIENCE = 240_000  # ms: a search of ten seconds on a busy machine


def table(names, *columns):
    rows = zip(*columns, strict=True)
    return "\n".join([",".join(names), *(",".join(f"{x:.5g}" for x in row) for row in rows)]) + "\n"


def fall():
    t = np.linspace(0.0, 8.0, 120)
    noise = 0.01 * np.random.default_rng(0).normal(size=120)
    return table(("t", "level"), t, 2 * np.exp(-0.5 * t) + noise)


def hares():
    t = np.linspace(0.0, 8.0, 81)
    truth = "prey' = 1.1*prey - 0.4*prey*predator; predator' = 0.1*prey*predator - 0.4*predator"
    solved = solve(System.read(truth), {"prey": 10.0, "predator": 5.0}, t)
    noise = 0.02 * np.random.default_rng(3).normal(size=(2, 81))
    return table(("t", "prey", "predator"), t, solved["prey"] + noise[0], solved["predator"] + noise[1])


@pytest.fixture(scope="module")
def chromium():
    chromium_path()
    with playwright.sync_playwright() as driver:
        browser = launch(driver)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, site):
    """A page with a session, in a window of the size of a laptop; scripts that fail, fail the test."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    context.add_init_script(VIOLATIONS)
    context.set_default_timeout(60_000)
    page = context.new_page()
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    # Listened to from the start, so that no dialog of the system opens: one that does, because the browser hears of a
    # listener after the key, blocks the next, and no chooser is told of.
    page.on("filechooser", lambda _: None)
    page.on("dialog", lambda dialog: faults.append(f"dialog {dialog.message}"))
    page.goto(f"{site.client.address}/#token={site.session.new_token()}")
    expect(page.locator("h1")).to_have_text("Find the equation behind your measurements")
    assert "token" not in page.url
    yield page
    assert faults == []
    assert page.evaluate("window.violations") == []
    context.close()


def drop(page, name, text):
    page.evaluate(DROP, [name, text])


def moved(page, move, state, value):
    """Moves a slider, and waits for the curve that starts there."""

    def asks(response):
        return response.url.endswith("/simulate") and response.request.post_data_json["initial"][state] == value

    with page.expect_response(asks) as answered:
        move()
    assert answered.value.json()["columns"][state][0] == value


def test_from_a_dropped_table_to_a_downloaded_equation(page, site):
    shoot(page, "data")
    drop(page, "fall.csv", fall())
    expect(page.get_by_text("The noise of u is about")).to_be_visible()
    role = page.get_by_label("Role of column level")
    role.select_option("unused")
    expect(page.get_by_text("No column is measured; choose at least one.")).to_be_visible()
    expect(page.get_by_role("button", name="Find the equation")).to_be_disabled()
    role.select_option("value")
    page.get_by_label("Order: the highest rate of change in it").select_option("1")
    page.get_by_label("Time for the search").select_option("10")
    shoot(page, "columns", whole=True)
    page.get_by_role("button", name="Find the equation").click()
    expect(page.locator(".lead")).to_have_text(re.compile("Preparing|Best of"))
    expect(page.locator(".lead")).to_have_text(re.compile(r"Best of \d+ equations so far"), timeout=PATIENCE)
    expect(page.locator(".equation math")).to_be_visible()
    shoot(page, "search")
    expect(page.get_by_role("heading", name="Take it with you")).to_be_visible(timeout=PATIENCE)
    chosen = page.locator(".equation math").text_content()
    assert re.match(r"u′=−0\.(49|50)\d*\u2062u", chosen), chosen
    with page.expect_download() as download:
        page.get_by_role("link", name="LaTeX").click()
    assert download.value.suggested_filename == "fall-equation.tex"
    assert download.value.path().read_bytes() == (site.runs / "fall/equation.tex").read_bytes()
    page.get_by_role("region", name="Simpler and more accurate equations").get_by_role(
        "button", name="See"
    ).first.click()
    expect(page.get_by_text("You are looking at another equation.")).to_be_visible()
    assert page.locator(".equation math").text_content() != chosen
    points = page.get_by_role("region", name="Simpler and more accurate equations").locator(".u-over")
    box = points.bounding_box()
    points.click(position={"x": box["width"] - 2, "y": box["height"] / 2})  # the longest equation
    expect(page.get_by_text("You are looking at another equation.")).to_be_visible()
    page.get_by_role("button", name="Back to the chosen one").click()
    expect(page.locator(".equation math")).to_have_text(chosen)
    page.get_by_role("link", name="Try it").first.click()
    slider = page.get_by_label("u at the start", exact=True)
    moved(page, lambda: slider.fill("1"), "u", 1.0)
    expect(page.get_by_text("90 % band")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert (lines[0], float(lines[1].split(",")[1])) == ("t,u,u'", 1.0)
    with page.context.expect_page() as opened:
        page.goto(f"{site.client.address}/#/run/fall")
        page.get_by_role("link", name="Report").click()
    expect(opened.value.locator("h1")).to_contain_text("discovered equation")
    opened.value.close()


def test_a_search_is_stopped_and_goes_on(page, site):
    t = np.linspace(0.0, 12.0, 300)
    truth = System.read("x' = 10*y - 10*x; y' = 28*x - y - x*z; z' = x*y - 2.667*z")
    solved = solve(truth, {"x": 1.0, "y": 1.0, "z": 20.0}, t)
    noise = np.random.default_rng(0).normal(size=(3, 300))
    columns = (solved[name] + own for name, own in zip("xyz", noise, strict=True))
    drop(page, "lorenz.csv", table(("t", "x", "y", "z"), t, *columns))
    page.get_by_role("button", name="Find the equation").click()
    expect(page.locator(".lead")).to_have_text(re.compile(r"Best of \d+ equations so far"), timeout=PATIENCE)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped. The best so far is kept")).to_be_visible(timeout=PATIENCE)
    before = read_run(site.runs / "lorenz").evaluations
    page.get_by_label("Time to go on").select_option("30")
    page.get_by_role("button", name="Search longer").click()
    expect(page.locator(".lead")).to_have_text(re.compile(r"Best of \d+ equations so far"), timeout=PATIENCE)
    expect(page.get_by_role("heading", name="Take it with you")).to_be_visible(timeout=PATIENCE)
    assert read_run(site.runs / "lorenz").evaluations > before


def test_a_system_of_two_states(page, site):
    with page.expect_file_chooser() as chooser:
        page.get_by_text("Choose a file").click()
    chooser.value.set_files({"name": "hares.csv", "mimeType": "text/csv", "buffer": hares().encode()})
    expect(page.get_by_text("called predator")).to_be_visible()
    expect(page.get_by_role("img", name="prey over time")).to_be_visible()
    page.get_by_text("More: functions, terms, signs, your own equation").click()
    own = "prey' = C*prey + C*prey*predator; predator' = C*prey*predator + C*predator"
    page.get_by_label("Your own equations to try first").fill(own)
    page.get_by_label("Order: the highest rate of change in it").select_option("1")
    page.get_by_label("Time for the search").select_option("10")
    page.get_by_role("button", name="Find the equation").click()
    expect(page.get_by_role("heading", name="Take it with you")).to_be_visible(timeout=PATIENCE)
    assert page.locator(".equation").first.locator("mtr").count() == 2
    for state in ("prey", "predator"):
        expect(page.get_by_role("img", name=f"{state} over time")).to_be_visible()
    portrait = page.get_by_role("img", name="predator against prey")
    expect(portrait).to_be_visible()
    assert portrait.locator(".arrows").get_attribute("d").count("M") > 200  # two strokes an arrow
    assert portrait.locator(".rest").count() >= 1
    with page.expect_download() as download:
        page.get_by_role("link", name="Python").click()
    scope = {}
    exec(download.value.path().read_text(), scope)  # noqa: S102  what a user would do with it
    assert scope["rhs"](0.0, [10.0, 5.0])[0] == pytest.approx(1.1 * 10 - 0.4 * 50, rel=0.1)
    page.get_by_role("button", name="Suggest the next experiment").click()
    answers = (page.get_by_text(text) for text in ("Start at prey = ", "nothing to tell apart", "is expected to tell"))
    expect(functools.reduce(lambda one, other: one.or_(other), answers)).to_be_visible()
    shoot(page, "system", whole=True)
    page.get_by_role("link", name="Try it").first.click()
    for state in ("prey", "predator"):
        expect(page.get_by_label(f"{state} at the start", exact=True)).to_be_visible()
    moved(page, lambda: page.get_by_label("predator at the start, as a number").fill("1"), "predator", 1.0)
    expect(page.get_by_text("90 % band").first).to_be_visible()
    shoot(page, "try")


def test_steps_of_the_prediction_front_inputs_constants_and_downloads(page, shelf):
    page.goto(f"{shelf.client.address}/#/run/duffing")
    front = page.get_by_role("region", name="each level of prediction")
    chosen = page.locator(".equation math").text_content()
    front.locator("tr:not(.chosen)").get_by_role("button", name="See").first.click()
    expect(page.get_by_text("You are looking at another equation.")).to_be_visible()
    assert page.locator(".equation math").text_content() != chosen
    for label, name in (("JSON", "equation.json"), ("Data (CSV)", "data.csv"), ("LaTeX", "equation.tex")):
        with page.expect_download() as download:
            page.get_by_role("link", name=label, exact=True).click()
        assert download.value.suggested_filename == f"duffing-{name}"
        assert download.value.path().stat().st_size > 0

    def solved(change, asked):
        """The answer to the call that a change makes."""
        wanted = lambda r: r.url.endswith("/simulate") and asked(r.request.post_data_json)  # noqa: E731
        with page.expect_response(wanted) as answered:
            change()
        return answered.value.json()

    page.goto(f"{shelf.client.address}/#/run/duffing/try")
    force = page.get_by_label("F as a formula in t")
    calm = solved(lambda: force.fill("0"), lambda trial: trial["inputs"] == {"F": "0"})
    assert set(calm["inputs"]["F"]) == {0.0}
    first = page.get_by_label(re.compile(r"^C in .*, as a number$")).first
    twice = 2 * float(first.input_value())
    other = solved(lambda: first.fill(str(twice)), lambda trial: twice in trial["constants"])
    assert other["columns"] != calm["columns"]


def test_by_keyboard_alone(page, shelf):
    def reach(name, role=None):
        """Presses Tab until the element of this name has the focus."""
        for _ in range(120):
            page.keyboard.press("Tab")
            at = page.evaluate(
                "() => { const e = document.activeElement; return (e.getAttribute('aria-label') || "
                "[...(e.labels || [])].map((l) => l.textContent).join(' ') || e.textContent).trim(); }"
            )
            if at == name:
                assert page.evaluate("document.activeElement.matches(':focus-visible')")
                return
        raise AssertionError(f"{name} is not reached by Tab")

    page.reload()
    expect(page.get_by_role("link", name="duffing")).to_be_visible()
    expect(page.locator("main")).to_be_focused()
    reach("Choose a file")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files({"name": "fall.csv", "mimeType": "text/csv", "buffer": fall().encode()})
    expect(page.get_by_text("The noise of u is about")).to_be_visible()
    reach("Role of column level")
    page.keyboard.press("n")  # "Names the experiment"; the select goes by letters
    expect(page.get_by_text("No column is measured; choose at least one.")).to_be_visible()
    page.keyboard.press("m")
    expect(page.get_by_text("The noise of u is about")).to_be_visible()
    reach("Find the equation")
    page.goto(f"{shelf.client.address}/#/")
    reach("duffing")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Take it with you")).to_be_visible()
    reach("Show as a table")
    page.keyboard.press("Enter")
    expect(page.locator("details[open] table").first).to_be_visible()
    reach("Try it")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Try it")
    reach("u at the start")
    with page.expect_response("**/simulate"):
        page.keyboard.press("ArrowRight")
    reach("As it was")
    page.keyboard.press("Space")


HOSTILE = "<img src=x onerror=alert(1)>"


BAD_FILES = (
    ("empty.csv", "", "empty.csv is empty"),
    ("words.csv", "hello\nthere\n", "words.csv has one column"),
    ("picture.csv", "\x89PNG\0\0", "picture.csv is a binary file"),
    ("ragged.csv", "t,u\n0,1\n1,2,3\n", "line 3 of ragged.csv has 3 cells"),
    (f"{HOSTILE}.csv", f"t,{HOSTILE}\n0,1\n1,2,3\n", f"line 3 of {HOSTILE}.csv has 3 cells"),
)


def test_bad_files_are_answered_in_a_sentence(page, site):
    for name, text, sentence in BAD_FILES:
        page.goto(f"{site.client.address}/#/")
        expect(page.locator("h1")).to_have_text("Find the equation behind your measurements")
        drop(page, name, text)
        expect(page.get_by_text(sentence).first).to_be_visible()


def test_a_guessed_derivative_is_shown_and_can_be_changed(page):
    t = np.linspace(0.0, 10.0, 80)
    drop(page, "shaken.csv", table(("t", "acceleration"), t, np.cos(2 * t)))
    role = page.get_by_label("Role of column acceleration")
    expect(role).to_have_value("value 2")
    expect(page.get_by_text("called u''")).to_be_visible()
    role.select_option("value")
    expect(page.get_by_text("called u''")).to_be_hidden()
    expect(role).to_have_value("value")


def test_hostile_names_are_shown_as_they_are(page, site):
    t = np.linspace(0, 5, 40)
    rows = "\n".join(f"{x:.3f},{np.exp(-x):.4f},{HOSTILE if x < 2.5 else '</script>'}" for x in t)
    drop(page, f"{HOSTILE}.csv", f"t,level {HOSTILE},run\n{rows}\n")
    expect(page.locator("h1")).to_have_text(f"{HOSTILE}.csv")
    expect(page.get_by_label(f"Role of column level {HOSTILE}")).to_be_visible()
    page.get_by_label("Role of column run").select_option("experiment")
    expect(page.get_by_label("Experiment (2)")).to_be_visible()
    assert page.locator("main img").count() == 0


def test_every_screen_can_be_read_and_reached(page, shelf):
    page.emulate_media(reduced_motion="reduce")
    faults = {}

    def audit(name):
        """Looks at the screen narrow and wide, light and dark."""
        for width, scheme in itertools.product((360, 1600), ("light", "dark")):
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(150)
            if (name, width, scheme) == ("data", 360, "dark"):
                shoot(page, "phone")
            found = page.evaluate(AUDIT)
            if found:
                faults[name, width, scheme] = found

    page.reload()
    expect(page.get_by_role("link", name="duffing")).to_be_visible()
    audit("data")
    page.get_by_role("button", name="Take duffing").click()
    expect(page.get_by_text("The noise of")).to_be_visible()
    page.get_by_text("More: functions, terms, signs, your own equation").click()
    page.get_by_role("button", name="Add a sign or limits").click()
    audit("columns")
    for run in ("duffing", "rabbits"):
        page.goto(f"{shelf.client.address}/#/run/{run}")
        expect(page.get_by_role("heading", name="Take it with you")).to_be_visible()
        expect(page.get_by_text("90 % band").first).to_be_visible()
        page.get_by_text("Show as a table").first.click()
        page.get_by_role("button", name="Suggest the next experiment").click()
        expect(page.get_by_text("expected to tell the chosen equation from")).to_be_visible()
        audit(f"result of {run}")
    page.goto(f"{shelf.client.address}/#/run/duffing/try")
    expect(page.get_by_label("u at the start", exact=True)).to_be_visible()
    audit("try")
    page.goto(f"{shelf.client.address}/#/compare/duffing,decay")
    expect(page.get_by_role("heading", name="Their curves on the data of the first")).to_be_visible()
    audit("compare")
    assert faults == {}


def test_units_hidden_states_and_varying_constants_are_answers_of_the_form(page, site):
    rows = "".join(f"{well},{x / 5:.1f},{np.exp(-x / 5):.4f}\n" for well in "AB" for x in range(25))
    drop(page, "plate.csv", f"well,time (s),level [m]\n{rows}")
    unit = page.get_by_label("Unit of column level [m]")
    expect(unit).to_have_value("m")
    unit.fill("m/(")
    unit.press("Enter")
    expect(page.locator(".finding.error")).to_contain_text("m/(")
    unit.fill("mm")
    unit.press("Enter")
    expect(page.locator(".finding.error")).to_have_count(0)
    page.get_by_text("More: functions, terms, signs, your own equation").click()
    page.get_by_label("Terms whose factor differs between experiments").fill("level")
    page.get_by_label("A state that was not measured").fill("S")
    expect(page.get_by_label("S at the start")).to_be_visible()
    expect(page.get_by_label("Terms whose factor differs between experiments")).to_have_value("level")
    sent = []

    def refuse(route):
        sent.append(route.request.post_data_json)
        route.fulfill(status=422, json={"error": "Not in this test."})

    page.route("**/api/runs", refuse)
    page.get_by_role("button", name="Find the equation").click()
    expect(page.get_by_text("Not in this test.")).to_be_visible()
    facts = site.client.post(f"/api/data/{sent[0]['data']}/check", sent[0]["form"]).json
    assert facts["problem"]["states"] == ["level", "S"]
    assert [sentence for sentence in facts["problem"]["known"] if sentence] == [
        "The coefficient varies by experiment for: level.",
        "Units: t in s, level in mm.",
        "Hidden: S was not measured; its equation and its path are inferred.",
    ]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_killed_search_is_told_and_goes_on(page, site):
    id = site.client.call("POST", "/api/data?name=fall.csv", fall().encode()).json["id"]
    form = {"columns": [{"role": "time"}, {"role": "value"}], "order": 2, "seconds": 3600}
    run = site.client.post("/api/runs", {"data": id, "form": form}).json["run"]
    page.goto(f"{site.client.address}/#/run/{run}")
    expect(page.locator(".lead")).to_have_text(re.compile("Best of|Looking at"), timeout=PATIENCE)
    os.kill(read_progress(site.runs / run)["pid"], signal.SIGKILL)
    expect(page.locator(".lead")).to_contain_text("The search ended without a word")
    page.get_by_role("button", name="Go on").click()
    expect(page.locator(".lead")).to_have_text(re.compile("Preparing|Best of"))
    expect(page.get_by_role("button", name="Stop")).to_be_visible()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_server_that_was_killed_and_started_again(chromium, tmp_path, written):
    import shutil

    shutil.copytree(written, tmp_path / "runs")

    def start(port):
        command = [sys.executable, "-P", "-m", "lgf.cli", "app", "--no-browser", "--port", str(port), str(tmp_path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        return process, address(process)

    def address(process):
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+/#token=\S+", line):
                return found[0]
        raise AssertionError("the server ended")

    server, link = start(0)
    context = chromium.new_context()
    context.set_default_timeout(60_000)
    page = context.new_page()
    try:
        page.goto(link)
        expect(page.get_by_role("link", name="duffing")).to_be_visible()
        server.kill()
        server.communicate()
        expect(page.get_by_text("The server does not answer at the moment")).to_be_visible()
        server, _ = start(re.search(r":(\d+)/", link)[1])
        expect(page.get_by_role("heading", name="This page is not connected")).to_be_visible()
        page.get_by_role("button", name="Show a new address in the terminal").click()
        page.goto("about:blank")
        page.goto(address(server))
        expect(page.get_by_role("link", name="duffing")).to_be_visible()
    finally:
        context.close()
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)


def test_a_page_on_another_port_learns_and_changes_nothing(page, shelf, tmp_path_factory):
    target = shelf.client.address
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "index.html").write_text(f"""<iframe src="{target}/"></iframe><pre></pre><script>
        const calls = [["GET", "/api/runs"], ["POST", "/api/runs/duffing/resume"], ["DELETE", "/api/runs/duffing"]];
        Promise.all(calls.flatMap(([method, path]) => ["cors", "no-cors"].map((mode) =>
          fetch("{target}" + path, {{ method, mode, credentials: "include", body: method === "POST" ? "" : null }})
            .then(async (r) => r.type + (await r.text()).length, () => "failed"))))
          .then((all) => document.querySelector("pre").textContent = JSON.stringify(all));
      </script>""")
    handler = functools.partial(_Quiet, directory=str(elsewhere))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        stranger = page.context.new_page()
        stranger.goto(f"http://127.0.0.1:{other.server_address[1]}/")
        expect(stranger.locator("pre")).to_have_text(re.compile(r"^\["))
        learnt = json.loads(stranger.locator("pre").text_content())
        assert set(learnt) <= {"failed", "opaque0"}
        stranger.close()
        other.shutdown()
    assert shelf.client.get("/api/runs/duffing").json["state"] == "finished"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


def test_tabs_that_are_not_looked_at_hold_no_connection(page, shelf):
    tabs = [page]
    hide = """() => {
      Object.defineProperty(document, "hidden", { value: true, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    for _ in range(8):
        tabs[-1].evaluate(hide)
        tab = page.context.new_page()
        tab.goto(f"{shelf.client.address}/#/")
        expect(tab.get_by_role("link", name="duffing")).to_be_visible()
        tabs.append(tab)
    for tab in tabs[1:]:
        tab.close()
