"""A real browser for tests of pages: headless Chromium, asked over its debugging pipe.

The pipe is the protocol of the developer tools without a web socket: JSON that ends in a zero byte.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE = 25.0  # seconds
_KEY_CODES = {
    "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38,
    "ArrowRight": 39, "ArrowDown": 40, "Delete": 46, "Tab": 9,
}  # fmt: skip
_LOOK = """(() => {
  const root = document.documentElement;
  const box = element => element.getBoundingClientRect();
  const inside = element => element.closest('.scroll') !== null;
  return JSON.stringify({
    title: document.title,
    width: innerWidth,
    scrolled: root.scrollWidth,
    images: [...document.images].map(image => [image.complete, image.naturalWidth]),
    overflowing: [...document.body.querySelectorAll('*')]
      .filter(element => !inside(element) && box(element).right > innerWidth + 1)
      .map(element => element.tagName + ' ' + element.className),
    tags: [...document.all].map(element => element.tagName.toLowerCase()),
    text: document.body.innerText,
  });
})()"""


@dataclass
class Look:
    """What a browser makes of a page at some width."""

    title: str
    width: int
    scrolled: int
    images: list[tuple[bool, int]]
    overflowing: list[str]
    tags: list[str]
    text: str


@dataclass
class Browser:
    """A tab of a running browser, and what it complained about or asked for."""

    process: subprocess.Popen[bytes]
    write_end: int
    read_end: int
    session: str | None = None
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    _events: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    _downloaded: list[str] = field(default_factory=list)
    _number: int = 0
    _rest: bytes = b""

    def ask(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, path: Path) -> None:
        """Go to a page and wait until it is there."""
        self.complaints.clear()
        self.requests.clear()
        self._events.clear()
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while "Page.loadEventFired" not in self._events:
            self._next()

    def look(self, width: int, height: int = 900, *, mobile: bool = False) -> Look:
        """Lay the page out at a width and tell what is there."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=mobile,
        )  # fmt: skip
        return Look(**json.loads(self.evaluate(_LOOK)))

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression on the page; a promise is waited for."""
        answer = self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until an expression on the page is true."""
        poll = f"const poll = () => {{ if ({expression}) done(); else setTimeout(poll, 5); }}"
        self.evaluate(f"new Promise(done => {{ {poll}; poll(); }})")

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent"))

    def click(self, selector: str) -> None:
        """Press the mouse in the middle of an element, which is scrolled into view."""
        find = f"document.querySelector({json.dumps(selector)})"
        x, y = self.evaluate(
            f"(() => {{ {find}.scrollIntoView({{block: 'center'}});"
            f" const box = {find}.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, *, ctrl: bool = False, shift: bool = False) -> None:
        """Press a key, named as scripts name it."""
        modifiers = 2 * ctrl + 8 * shift
        code = _KEY_CODES.get(key, ord(key[0].upper()))
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 and not ctrl else "")
        options: dict[str, Any] = {"text": text} if text else {}
        for kind in ("keyDown", "keyUp"):
            self.ask(
                "Input.dispatchKeyEvent",
                type=kind, key=key, windowsVirtualKeyCode=code, modifiers=modifiers,
                **(options if kind == "keyDown" else {}),
            )  # fmt: skip

    def type(self, selector: str, text: str) -> None:
        """Replace the text of a field as by hand."""
        self.click(selector)
        self.evaluate(f"document.querySelector({json.dumps(selector)}).select()")
        if text:
            self.ask("Input.insertText", text=text)
        else:
            self.press("Delete")

    def upload(self, selector: str, path: Path) -> None:
        """Choose a file in a field for files."""
        root = self.ask("DOM.getDocument")["root"]["nodeId"]
        node = self.ask("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.ask("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def download(self, selector: str, folder: Path) -> Path:
        """Click on what starts a download, and return the file once it is complete."""
        session, self.session = self.session, None
        self.ask(
            "Browser.setDownloadBehavior",
            behavior="allow", downloadPath=str(folder), eventsEnabled=True,
        )  # fmt: skip
        self.session = session
        self._downloaded.clear()
        self.click(selector)
        while not self._downloaded:
            self._next()
        (name,) = self._downloaded
        return folder / name

    def prefer(self, scheme: str) -> None:
        """Set the colour scheme that a page is asked for: light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        answer = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def _next(self) -> dict[str, Any]:
        """Wait for a message; keep events."""
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self.read_end], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            received = os.read(self.read_end, 2**20)
            assert received, f"the browser ended with status {self.process.wait(_PATIENCE)}"
            self._rest += received
        line, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, parameters: dict[str, Any]) -> None:
        self._events.append(event)
        if event == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif event == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif event == "Browser.downloadWillBegin":
            self._names[parameters["guid"]] = parameters["suggestedFilename"]
        elif event == "Browser.downloadProgress" and parameters["state"] == "completed":
            self._downloaded.append(self._names[parameters["guid"]])
        elif event in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            self.complaints.append(json.dumps(parameters))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser that reaches no network; skip the test where none is installed."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser found: install one of {', '.join(NAMES)}")
    to_browser, to_us = os.pipe(), os.pipe()

    def hand_over() -> None:
        # It reads from 3 and writes to 4; copies first, for an end may be one of these.
        ends = os.dup(to_browser[0]), os.dup(to_us[1])
        for end, number in zip(ends, (3, 4), strict=True):
            os.dup2(end, number)

    arguments = [
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--hide-scrollbars", "--disable-extensions", "--no-first-run",
        "--disable-background-networking",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}",
        "--remote-debugging-pipe", "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(
        [program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=False,
        preexec_fn=hand_over,
        start_new_session=True,
    )
    os.close(to_browser[0])
    os.close(to_us[1])
    tab = Browser(process, to_browser[1], to_us[0])
    try:
        target = tab.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = tab.ask("Target.attachToTarget", targetId=target, flatten=True)
        tab.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.ask(f"{domain}.enable")
        yield tab
        tab.session = None
        tab.ask("Browser.close")
    finally:
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
        for end in (to_browser[1], to_us[0]):
            os.close(end)
