"""A real browser for tests: Chromium, told what to do through a pipe, in the DevTools protocol's own words."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-dev-shm-usage", "--remote-debugging-pipe",
)  # fmt: skip


def find_browser() -> str | None:
    """The browser on this machine, or None."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """One page. `problems` are errors of its script and of its console, `requests` what it asked for."""

    def __init__(self, profile: Path, timeout: float = 60.0):
        self.timeout, self.problems, self.requests = timeout, [], []
        self._count, self._buffer, self._page = 0, b"", None
        down, self._write = os.pipe()
        self._read, up = os.pipe()
        program = [find_browser(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        shell = f'exec "$@" 3<&{down} 4>&{up}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "browser", *program], pass_fds=(down, up), stderr=subprocess.DEVNULL
        )
        os.close(down)
        os.close(up)
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._page = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its answer; what happens meanwhile is kept."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._page:
            message["sessionId"] = self._page
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + self.timeout
        while (answer := self._next(end)).get("id") != self._count:
            self._notice(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self._read, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError("the browser did not answer")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _notice(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(
                params["exceptionDetails"].get("exception", {}).get("description", "exception")
            )
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(
        self, page: Path, width: int = 1200, height: int = 900, dark: bool = False, hash_: str = ""
    ) -> None:
        """Load a page at a size and with a colour scheme, and wait until its figures are drawn."""
        self.problems, self.requests = [], []
        self.size(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Page.navigate", url="about:blank")
        self.send("Page.navigate", url=page.resolve().as_uri() + hash_)
        self.settle("document.readyState === 'complete'")
        self.settle()

    def size(self, width: int, height: int) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def settle(self, condition: str = "plots(document).every((m) => m.style.minHeight === '')") -> None:
        """Wait until something is so; by default, that no figure is being drawn."""
        end = time.monotonic() + self.timeout
        while time.monotonic() < end:
            if self.run(f"try {{ return {condition} }} catch {{ return false }}"):
                return
            time.sleep(0.05)
        raise RuntimeError(f"never true: {condition}")

    def run(self, script: str) -> Any:
        """The value that a script returns."""
        answer = self.send(
            "Runtime.evaluate",
            expression=f"(async () => {{ {script} }})()",
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"].get("exception", {}).get("description")))
        return answer["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        """One key, as from a keyboard."""
        codes = {
            "Tab": 9,
            "Enter": 13,
            "ArrowRight": 39,
            "ArrowLeft": 37,
            "ArrowDown": 40,
            "Escape": 27,
            " ": 32,
        }
        code = {"windowsVirtualKeyCode": codes.get(key, 0)}
        words = {"text": text} if text else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **code, **words)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, **code)

    def picture(self, selector: str | None = None, full: bool = False) -> bytes:
        """PNG of the window, of the whole page, or of one element."""
        options: dict[str, Any] = {"format": "png"}
        if selector or full:
            where = (
                f"document.querySelector({json.dumps(selector)})" if selector else "document.documentElement"
            )
            box = self.run(
                f"const b = {where}.getBoundingClientRect();"
                "return {x: b.left + scrollX, y: b.top + scrollY, width: b.width, height: b.height, scale: 1}"
            )
            options |= {"clip": box, "captureBeyondViewport": True}
        return base64.b64decode(self.send("Page.captureScreenshot", **options)["data"])

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(10)
        os.close(self._write)
        os.close(self._read)
