"""Makes the pictures of README and docs anew, each for light and dark grounds (`x_dark.png`).

`make pictures` trains the models and calls this, which draws what the pages' own commands and code
draw, and takes the pages of `etcmodel serve` and of a report; it needs Chromium and selenium.
"""

import contextlib
import io
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from etcmodel.tools import draw_attention
from tests import page as pages
from tests.browser import browser

GROUNDS = ("light", "dark")
SERVED_SIZE = {"width": 1180, "height": 1290, "deviceScaleFactor": 1, "mobile": False}
REPORT_SIZE = {"width": 1000, "height": 1250, "deviceScaleFactor": 1, "mobile": False}


def name_of(picture, theme):
    """The path in docs of a picture for a theme's ground: str."""
    return str(pages.DOCS / f"{picture}{'_dark' * (theme == 'dark')}.png")


def draw_concepts(theme):
    """Draws what the commands of the page on concepts draw."""
    commands = re.findall(r"draw_attention (.*)", pages.read("concepts.md").replace("\\\n", ""))
    for command in dict.fromkeys(commands):
        given = dict(word[2:].split("=", 1) for word in shlex.split(command))
        folder = ""
        if "structure" in given:
            given["structure"] = str(pages.DOCS.parent / given["structure"])
            folder = "concepts/"
        stem = pathlib.Path(given.pop("output")).stem
        output = name_of(folder + stem, theme)
        draw_attention.run(draw_attention.DrawOptions(**given, output=output, theme=theme))


def draw_explained():
    """Draws the row that the page on processors explains, by the page's own code."""
    names = {}
    with tempfile.TemporaryDirectory() as folder, pages.working_in(folder):
        for code in pages.blocks("processor.md"):
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, names)  # The library's own page.
            drawn = re.search(r'explained\.save\("explained\.png", title="(.*?)"\)', code)
            if drawn:
                for theme in GROUNDS:
                    names["explained"].save(name_of("explained", theme), drawn[1], theme=theme)


def set_window(driver, theme, size):
    """Sets the size of the window, without scroll bars, for a reader who wants this theme."""
    features = [{"name": "prefers-color-scheme", "value": theme}]
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def take_served(driver, url, theme):
    """Takes the page asked its first example: from the answer on, with its first word chosen."""
    set_window(driver, theme, SERVED_SIZE)
    page = browser.Page(driver, url)
    page.shown("#example").click()
    page.one("#send").click()
    page.shown("#result")
    page.all("#more .text mark[data-token]")[0].click()
    page.one("#more details:first-child summary").click()  # The question stands above, too.
    page.run("document.getElementById('result').scrollIntoView()")
    driver.save_screenshot(name_of("served_page", theme))


def take_report(driver, path, theme):
    """Takes the upper part of a report."""
    set_window(driver, theme, REPORT_SIZE)
    browser.Page(driver, pathlib.Path(path).resolve().as_uri())
    driver.save_screenshot(name_of("report", theme))


def main(export, report):
    draw_explained()
    for theme in GROUNDS:
        draw_concepts(theme)
    command = [sys.executable, "-m", "etcmodel.tools.serve", f"--model_dir={export}", "--port=0"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        tempfile.TemporaryDirectory() as profile,
        browser.browser(profile) as driver,
    ):
        try:
            lines = iter(server.stdout.readline, "")
            url = next(x[0] for x in (re.search(r"http://\S+/", y) for y in lines) if x)
            for theme in GROUNDS:
                take_served(driver, url, theme)
                take_report(driver, os.path.abspath(report), theme)
        finally:
            server.terminate()


if __name__ == "__main__":
    main(*sys.argv[1:])
