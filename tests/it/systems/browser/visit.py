"""Leads headless Chromium through the bank's pages by the keyboard alone: a visit per line in, its course per line out, as JSON.

    python visit.py AXE.js FOLDER

A visit is {"name", "link", "language", "identity", "context", "refuse", "pages", "is_long"}; only name and link are required.
axe-core judges each page, at 320 CSS pixels as well, and each is photographed. The answer has where the browser was sent
("redirect"), the headings of the pages ("pages"), and what was wrong with them ("faults").
"""
import json, os, sys
from pathlib import Path

from playwright.sync_api import Error, sync_playwright

WIDTHS = [320, 900]
TPP = "https://tpp.example/"
PAGES = 8  # at most, in one visit
TABS = 60  # at most, to reach something


def main():
    axe, pictures = Path(sys.argv[1]).read_text(), Path(sys.argv[2])
    with sync_playwright() as playwright:
        # Chromium has no sandbox of its own where root runs it.
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            chromium_sandbox=os.geteuid() != 0,
            args=["--host-resolver-rules=MAP tpp.example ~NOTFOUND"],
        )
        for line in sys.stdin:
            print(json.dumps(Visit(browser, axe, pictures, json.loads(line)).run()), flush=True)
        browser.close()


class Visit:
    def __init__(self, browser, axe, pictures, asked):
        self.axe, self.pictures, self.asked = axe, pictures, asked
        self.headings, self.faults = [], []
        self.context = browser.new_context(locale=asked.get("language", "en-GB"), viewport={"width": WIDTHS[-1], "height": 700})
        self.page = self.context.new_page()
        self.redirect = None
        self.page.on("request", self.requested)
        self.page.on("console", self.written)

    def requested(self, request):
        if request.url.startswith(TPP):
            self.redirect = request.url

    def written(self, message):
        # The TPP does not exist, and a page may have an error's status.
        is_status = message.location.get("url", "").split("?")[0] == self.asked["link"].split("?")[0]
        if message.type == "error" and self.redirect is None and not is_status:
            self.fault("console", message.text)

    def fault(self, kind, text):
        self.faults.append(f"{kind}: {text}")

    def run(self):
        self.page.goto(self.asked["link"])
        while self.redirect is None and len(self.headings) < self.asked.get("pages", PAGES):
            self.look()
            if not self.act():
                break
        self.context.close()
        return {"redirect": self.redirect, "pages": self.headings, "faults": self.faults}

    def look(self):
        """Judges and photographs the page."""
        self.headings.append(self.page.inner_text("h1"))
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 700})
            # evaluate() is not subject to the page's policy, which forbids scripts.
            found = self.page.evaluate(self.axe + "; axe.run().then(found => found.violations)")
            for violation in found:
                targets = [node["target"] for node in violation["nodes"]]
                self.fault(f"axe at {width}", f"{violation['id']}: {violation['help']} {targets}")
            wide = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            if wide > 0:
                self.fault(f"at {width}", f"the page is {wide} pixels too wide")
            name = f"{self.asked['name']}-{len(self.headings)}-{width}.png"
            self.page.screenshot(path=self.pictures / name, full_page=not self.asked.get("is_long"))

    def act(self):
        """Fills in the page and goes on; false if there is no form."""
        page = self.page
        if page.query_selector("button") is None:
            return False
        if page.query_selector("#identity"):
            self.tab_to("#identity")
            page.keyboard.type(self.asked.get("identity", "01010112345"))
        if page.query_selector("[name=context]"):
            self.tab_to("[name=context]")
            for _ in range(self.asked.get("context", 0)):
                page.keyboard.press("ArrowDown")
        for box in page.query_selector_all("[name=account]"):
            if not box.is_checked():
                self.tab_to(f"[value='{box.get_attribute('value')}']")
                page.keyboard.press("Space")
        if page.query_selector(".phone"):
            page.wait_for_timeout(3000)
        is_last = page.query_selector("[name=account], .sum") is not None
        self.tab_to("button:not(.primary)" if is_last and self.asked.get("refuse") else "button.primary")
        if is_last:
            name = f"{self.asked['name']}-filled-{WIDTHS[-1]}.png"
            page.screenshot(path=self.pictures / name, full_page=True)
        try:
            with page.expect_navigation():
                page.keyboard.press("Enter")
        except Error:
            if self.redirect is None:
                raise
        return True

    def tab_to(self, selector):
        """Moves the focus as a person without a mouse does, and sees where it is."""
        for _ in range(TABS):
            if self.page.evaluate("selector => document.activeElement.matches(selector)", selector):
                outline = self.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                if outline == "none":
                    self.fault("focus", f"it is not visible on {selector}")
                return
            self.page.keyboard.press("Tab")
        self.fault("focus", f"the keyboard does not reach {selector}")


main()
