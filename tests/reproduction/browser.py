"""A headless Chromium driven by its debugging protocol over two pipes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

# Visibility of collapsed content changes when a frame is drawn.
TWO_FRAMES = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    """Path of an installed Chromium, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


class Browser:
    """One page of a browser process; a context manager."""

    def __init__(self, program: str, profile: Path) -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        # The browser reads from descriptor 3 and writes to 4, so these must be above both.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
        moved = 'exec 3<&{} 4>&{}; exec "$@"'.format(*ends)
        words = [
            "bash", "-c", moved, "bash", program, "--headless", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={profile}",
        ]  # fmt: skip
        self._process = subprocess.Popen(words, pass_fds=ends, stderr=subprocess.DEVNULL)
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self._buffer = b""
        self._events: list[dict] = []
        self._id, self._session = 0, {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        self.call("Page.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._session = {}
        self.call("Browser.close")
        self._process.wait(timeout=60)
        os.close(self._out)
        os.close(self._in)

    def call(self, method: str, **params):
        """Send a command and return its result."""
        self._id += 1
        message = {"id": self._id, "method": method, "params": params, **self._session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._id:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._events.append(answer)

    def open(self, path: Path) -> None:
        """Load a file and wait until it is complete."""
        self._events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._events.append(self._receive())

    def show(self, width: int, media: str = "screen", dark: bool = False) -> None:
        """Set the width of the page in pixels, the medium and the colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.call("Runtime.evaluate", expression=TWO_FRAMES, awaitPromise=True)

    def evaluate(self, expression: str):
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """Write what is visible to a PNG file."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def printed_pages(self) -> int:
        """The number of pages when the document is printed with its own page size."""
        pdf = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        return len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(pdf["data"])))

    def _receive(self) -> dict:
        while b"\0" not in self._buffer:
            chunk = os.read(self._in, 2**20)
            assert chunk, "the browser ended"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)
