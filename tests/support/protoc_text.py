# SPDX-License-Identifier: MIT
"""Messages of Protocol Buffers, as `protoc --decode` prints them."""
import subprocess


def decoded(data, message, folder, proto):
    """A message as a dictionary: field -> list of values, texts or dictionaries."""
    done = subprocess.run(["protoc", f"--decode={message}", f"-I{folder}", proto], input=data, capture_output=True, check=True)
    return _parse(iter(done.stdout.decode().splitlines()))


def _parse(lines):
    message = {}
    for line in lines:
        line = line.strip()
        if line == "}":
            return message
        if line.endswith("{"):
            message.setdefault(line[:-2], []).append(_parse(lines))
            continue
        name, value = line.split(": ", 1)
        message.setdefault(name, []).append(_text(value) if value[0] == '"' else value)
    return message


def _text(quoted):
    return quoted[1:-1].encode("latin-1").decode("unicode_escape").encode("latin-1").decode()
