"""Chromium without a window, driven over a pipe by its DevTools protocol; only Python's own library is needed.

    with Browser(folder) as browser:
        page = browser.open(url, width=390, dark=True)
        page.value("document.title")
        page.screenshot("phone.png")

Every wait has a deadline. Errors are raised.
"""
import base64, json, os, select, shutil, subprocess, time


class Browser:
    def __init__(self, folder):
        self.folder = folder
        self.number = 0
        self.rest = b""
        self.events = []

    def __enter__(self):
        to_child, self.out = os.pipe()
        self.into, from_child = os.pipe()
        # Chromium reads its commands from descriptor 3 and writes to 4.
        command = ["sh", "-c", f'exec "$@" 3<&{to_child} 4>&{from_child}', "sh", shutil.which("chromium"),
                   "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                   "--no-first-run", "--disable-background-networking", "--disable-component-update",
                   "--disable-extensions", f"--user-data-dir={self.folder}/profile", "--remote-debugging-pipe",
                   "about:blank"]
        environment = dict(os.environ, HOME=self.folder, XDG_CONFIG_HOME=self.folder, XDG_CACHE_HOME=self.folder)
        with open(f"{self.folder}/chromium.err", "wb") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                                            env=environment, pass_fds=(to_child, from_child))
        os.close(to_child)
        os.close(from_child)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    # The next message: an answer or an event.
    def read(self, until):
        while b"\0" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.into], [], [], left)[0]:
                raise TimeoutError("Chromium has not answered")
            piece = os.read(self.into, 1 << 20)
            if not piece:
                raise EOFError("Chromium has ended; see chromium.err")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, parameters=None, session=None, within=60):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + within
        while True:
            answer = self.read(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, url, **how):
        return Page(self, url, **how)


class Page:
    def __init__(self, browser, url, width=1280, height=900, dark=False, still=True):
        self.browser = browser
        target = browser.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        self.call("Page.enable")
        self.call("Runtime.enable")
        self.call("Log.enable")
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        self.call("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}]})
        self.go(url)

    def call(self, method, parameters=None):
        return self.browser.call(method, parameters, self.session)

    def go(self, url):
        self.call("Page.navigate", {"url": url})
        self.wait_for("location.href != 'about:blank' && document.readyState == 'complete'")

    def value(self, expression):
        result = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression, within=30):
        until = time.monotonic() + within
        while not self.value(expression):
            if time.monotonic() > until:
                raise TimeoutError(f"not true within {within} s: {expression}; the page says: " +
                                   str(self.value("document.body.innerText"))[:1500])
            time.sleep(0.02)

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": key})

    def screenshot(self, path, whole=True):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 3000), "scale": 1}
        how = {"captureBeyondViewport": True, "clip": clip} if whole else {}
        data = self.call("Page.captureScreenshot", how)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    # What the browser has complained about: blocked scripts and styles, errors, exceptions.
    def complaints(self):
        self.value("1")
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                found.append(event["params"]["exceptionDetails"]["exception"].get("description", "exception"))
            if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(event["params"]["entry"]["text"])
        return found

    def close(self):
        self.browser.call("Target.closeTarget", {"targetId": self.target})
