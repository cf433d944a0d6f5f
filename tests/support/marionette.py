# SPDX-License-Identifier: MIT
"""Firefox without a display, driven over its own socket (Marionette). Playwright drives only a Firefox of its own."""
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import time


class Firefox:
    """A browser with a new profile in `folder`. Closes with the `with` block."""

    def __init__(self, path, folder):
        self.profile = os.path.join(folder, "profile")
        os.mkdir(self.profile)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        with open(os.path.join(self.profile, "user.js"), "w") as f:
            f.write(f'user_pref("marionette.port", {self.port});\n')
            for off in ("datareporting.policy.dataSubmissionEnabled", "app.update.enabled", "network.captive-portal-service.enabled",
                        "network.connectivity-service.enabled", "browser.shell.checkDefaultBrowser", "extensions.update.enabled"):
                f.write(f'user_pref("{off}", false);\n')
        command = [path, "--headless", "--no-remote", "--marionette", "--profile", self.profile, "about:blank"]
        environment = os.environ | {"HOME": folder, "MOZ_HEADLESS": "1", "MOZ_CRASHREPORTER_DISABLE": "1"}
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
                                        start_new_session=True)
        self.count, self.rest = 0, b""

    def __enter__(self):
        self.socket = self._connect(120)
        self._message()  # the greeting
        self.do("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {"acceptInsecureCerts": False}}})
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _connect(self, seconds):
        for _ in range(seconds * 10):
            if self.process.poll() is not None:
                raise RuntimeError(f"firefox ended: {self.process.returncode}")
            try:
                return socket.create_connection(("127.0.0.1", self.port), 60)
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("firefox does not listen")

    def _message(self):
        """LENGTH:JSON"""
        self.socket.settimeout(180)
        while b":" not in self.rest or len(self.rest) - self.rest.index(b":") - 1 < int(self.rest[: self.rest.index(b":")]):
            more = self.socket.recv(65536)
            if not more:
                raise RuntimeError("firefox closed the connection")
            self.rest += more
        at = self.rest.index(b":")
        end = at + 1 + int(self.rest[:at])
        text, self.rest = self.rest[at + 1 : end], self.rest[end:]
        return json.loads(text)

    def do(self, command, parameters=None):
        self.count += 1
        text = json.dumps([0, self.count, command, parameters or {}]).encode()
        self.socket.sendall(b"%d:%s" % (len(text), text))
        _, _, error, result = self._message()
        if error:
            raise RuntimeError(f"{command}: {error}")
        return result

    def open(self, path):
        self.do("WebDriver:Navigate", {"url": f"file://{path}"})

    def evaluate(self, script):
        """The result of a function body in the page's own world."""
        return self.do("WebDriver:ExecuteScript", {"script": script, "args": [], "sandbox": None})["value"]

    def evaluate_later(self, script):
        """The result of the body of an async function."""
        return self.do("WebDriver:ExecuteAsyncScript", {"script": "const done = arguments[arguments.length - 1]; (async () => {"
                       f"{script}" "})().then(done, (e) => done(String(e)))", "args": [], "sandbox": None,
                       "scriptTimeout": 60000})["value"]

    def wait_for(self, script, seconds=120):
        for _ in range(seconds * 5):
            if self.evaluate(script):
                return
            time.sleep(0.2)
        raise RuntimeError(f"firefox: not so: {script}")

    def key(self, text):
        pressed = [{"type": kind, "value": text} for kind in ("keyDown", "keyUp")]
        self.do("WebDriver:PerformActions", {"actions": [{"type": "key", "id": "keyboard", "actions": pressed}]})

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.do("WebDriver:TakeScreenshot", {"full": False})["value"]))
