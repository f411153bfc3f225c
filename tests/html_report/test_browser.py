import html
import json
import re
import subprocess
from pathlib import Path

import pytest

from cdsampler.report.html import write_report

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Debian's chromium at /usr/bin/chromium"),
]


def browse(address, profile, *more):
    """Open a page without a network, and return what the browser wrote."""
    flags = "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
    flags += "disable-component-update disable-sync enable-logging=stderr host-resolver-rules=MAP\u00a0*\u00a0~NOTFOUND"
    command = [str(CHROMIUM), *(f"--{flag.replace(chr(160), ' ')}" for flag in flags.split(" "))]
    command += [f"--user-data-dir={profile}", *more, address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


@pytest.fixture(scope="module")
def page(fake, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    fake.write_store(folder, fake.grid(n_seeds=2))
    return write_report(folder, n_resamples=5).page.as_uri()


def samplers(dom):
    return set(re.findall(r'<g class="sampler" data-label="([^"]*)"', dom))


def test_the_page_draws_its_plots_without_errors(page, tmp_path):
    done = browse(page, tmp_path, "--dump-dom")
    assert "CONSOLE" not in done.stderr
    assert samplers(done.stdout) == {"nrpt", "oasmc", "cds", "mala"}
    assert done.stdout.count('<svg viewBox="0 0 400 270" role="group"') == 6


def test_hiding_a_sampler_and_switching_the_accounting(page, tmp_path):
    dom = browse(f"{page}#hide=mala&accounting=returned", tmp_path, "--dump-dom").stdout
    assert samplers(dom) == {"nrpt", "oasmc", "cds"}
    assert re.search(r'class="chip" data-label="mala" aria-pressed="false"', dom)
    assert '<body data-accounting="returned" ' in dom


def test_a_click_hides_a_sampler_and_hovering_shows_its_figures(page, tmp_path):
    # A copy with a script at its end does what a reader's hand does.
    text = Path(page.removeprefix("file://")).read_text()
    drive = """<script>
      document.querySelector('.chip[data-label="mala"]').click();
      const svg = document.querySelector(".plots svg"), box = svg.getBoundingClientRect();
      const mark = svg.querySelector('[data-label="cds"] .spot').getBoundingClientRect();
      svg.dispatchEvent(new PointerEvent("pointermove",
        { clientX: mark.left + mark.width / 2, clientY: mark.top + mark.height / 2 }));
    </script></body>"""
    driven = tmp_path / "driven.html"
    driven.write_text(text.replace("</body>", drive))
    dom = browse(driven.as_uri(), tmp_path / "profile", "--dump-dom").stdout
    assert samplers(dom) == {"nrpt", "oasmc", "cds"}
    tip = re.search(r'<div id="tip"[^>]*>(.*?)</div>', dom).group(1)
    assert "<b>cds</b>" in tip
    assert "n_replicas=" in tip
    assert "of 2 repeats" in tip


def test_points_are_read_by_the_keyboard(page, tmp_path):
    text = Path(page.removeprefix("file://")).read_text()
    drive = """<script>
      const log = [], svg = document.querySelector(".plots svg");
      const say = () => log.push(document.activeElement.getAttribute("aria-label"));
      const press = (key) => {
        document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
        say();
      };
      svg.querySelector('[tabindex="0"]').focus();
      say();
      for (const key of ["ArrowRight", "ArrowDown", "Home", "ArrowUp", "End"]) press(key);
      log.push(document.getElementById("tip").textContent);
      press("Escape");
      document.body.dataset.log = JSON.stringify(log);
      document.body.dataset.stops = document.querySelectorAll('.plots [tabindex="0"]').length;
      document.body.dataset.all = document.querySelectorAll('.plots [tabindex]').length;
      document.body.dataset.hidden = document.getElementById("tip").hidden;
    </script></body>"""
    driven = tmp_path / "driven.html"
    driven.write_text(text.replace("</body>", drive))
    dom = browse(driven.as_uri(), tmp_path / "profile", "--dump-dom").stdout
    body = {
        name: html.unescape(value)
        for name, value in re.findall(r'data-(\w+)="([^"]*)"', re.search(r"<body[^>]*>", dom).group())
    }
    first, right, down, home, up, end, tip, _ = json.loads(body["log"])
    best, second, *_ = re.findall(r'class="chip" data-label="([^"]*)"', text)
    names = [label.split(";")[0] for label in (first, right, down, home, up, end)]
    assert names == [best, best, second, second, best, best]
    assert "budget 500:" in first
    assert "budget 500:" in home
    assert "budget 8,000:" in end
    assert tip == "".join(end.split("; "))
    assert body["hidden"] == "true"
    assert int(body["stops"]) == 6  # one for each plot, however many points it has
    assert int(body["all"]) > 60


def test_buttons_are_the_browsers_own_and_show_all_or_none(page, tmp_path):
    text = Path(page.removeprefix("file://")).read_text()
    assert len(re.findall(r'<button type="button" class="chip"[^>]* aria-pressed="true">', text)) == 4
    drive = """<script>
      document.querySelector('[data-every="none"]').click();
      document.querySelector('.chip[data-label="cds"]').click();
    </script></body>"""
    driven = tmp_path / "driven.html"
    driven.write_text(text.replace("</body>", drive))
    assert samplers(browse(driven.as_uri(), tmp_path / "profile", "--dump-dom").stdout) == {"cds"}


def test_a_screenshot_is_not_blank(page, tmp_path):
    picture = tmp_path / "page.png"
    browse(page, tmp_path / "profile", f"--screenshot={picture}", "--window-size=1280,2000")
    assert picture.stat().st_size > 100_000
