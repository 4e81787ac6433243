"""Chromium without a window, and what is done with it as a user does it.

Selenium is installed by `make test-browser` alone, so it is imported only where a browser starts.
"""

import contextlib
import os
import pathlib
import shutil

import pytest

_BINARIES = ("chromium", "chromedriver")
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --window-size=1000,1400"
)
_PATIENCE = 60  # Seconds that something that must happen on a page may take on a busy machine.


@contextlib.contextmanager
def browser(folder):
    """A driver of a fresh Chromium, whose profile is in `folder`."""
    driver, binary = (shutil.which(name) for name in reversed(_BINARIES))
    if not (driver and binary):
        pytest.fail(
            "No Chromium: apt-get install chromium chromium-driver (Debian's packages).",
            pytrace=False,
        )
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    os.environ["SE_OFFLINE"] = "true"  # Nothing is looked up on the network.
    options = Options()
    options.binary_location = binary
    for flag in (*_FLAGS.split(), f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chromium = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield chromium
    finally:
        chromium.quit()


class Page:
    """A page that is open.

    Args:
        driver: as `browser` gives it.
        url: str.
    """

    def __init__(self, driver, url):
        self.driver = driver
        driver.get_log("browser")  # What other pages said is of no interest here.
        driver.get(url)

    @classmethod
    def of_file(cls, driver, path):
        return cls(driver, pathlib.Path(path).absolute().as_uri())

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        (element,) = self.all(selector)
        return element

    def run(self, script, *arguments):
        """What a script returns, within the page."""
        return self.driver.execute_script(script, *arguments)

    def paste(self, selector, text):
        """Puts a text where the cursor is in a field, as from the clipboard."""
        field = self.one(selector)
        field.click()
        self.run("document.execCommand('selectAll')")
        self.run("document.execCommand('insertText', false, arguments[0])", text)
        assert field.get_attribute("value") == text

    def press(self, *keys):
        """Keys, by their names in Selenium, one after another; of "A+B" both together."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        chain = ActionChains(self.driver)
        for key in keys:
            *held, last = [getattr(Keys, name) for name in key.split("+")]
            for name in held:
                chain.key_down(name)
            chain.send_keys(last)
            for name in held:
                chain.key_up(name)
        chain.perform()

    def hover(self, element):
        from selenium.webdriver.common.action_chains import ActionChains

        self.run("arguments[0].scrollIntoView({ block: 'center' })", element)
        ActionChains(self.driver).move_to_element(element).perform()

    def wait_for(self, condition):
        """Waits until a function of nothing returns something true, and returns that."""
        from selenium.webdriver.support.wait import WebDriverWait

        return WebDriverWait(self.driver, _PATIENCE, poll_frequency=0.05).until(
            lambda driver: condition()
        )

    def shown(self, selector):
        """Waits until the element is seen; returns it."""
        return self.wait_for(
            lambda: next((x for x in self.all(selector) if x.is_displayed()), None)
        )

    def complaints(self):
        """What the browser logged: errors of scripts, and what the page's policy forbade."""
        return [entry["message"] for entry in self.driver.get_log("browser")]
