"""Takes README's picture: the page of `etcmodel serve`, asked the first example of an export.

`make served-page` trains the model and calls this, which serves it; it needs Chromium and selenium.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from tests.browser import browser

DOCS = pathlib.Path(__file__).parents[2] / "docs"
SIZE = {"width": 1180, "height": 1290, "deviceScaleFactor": 1, "mobile": False}
THEMES = {"light": "served_page.png", "dark": "served_page_dark.png"}


def take(driver, url):
    """Writes a picture in each theme: from the answer on, with its first word chosen."""
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
    for theme, name in THEMES.items():
        features = [{"name": "prefers-color-scheme", "value": theme}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        page = browser.Page(driver, url)
        page.shown("#example").click()
        page.one("#send").click()
        page.shown("#result")
        page.all("#more .text mark[data-token]")[0].click()
        page.one("#more details:first-child summary").click()  # The question stands above, too.
        page.run("document.getElementById('result').scrollIntoView()")
        driver.save_screenshot(str(DOCS / name))


def main(folder):
    command = [sys.executable, "-m", "etcmodel.tools.serve", f"--model_dir={folder}", "--port=0"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        tempfile.TemporaryDirectory() as profile,
        browser.browser(profile) as driver,
    ):
        try:
            lines = iter(server.stdout.readline, "")
            take(driver, next(x[0] for x in (re.search(r"http://\S+/", y) for y in lines) if x))
        finally:
            server.terminate()


if __name__ == "__main__":
    main(sys.argv[1])
