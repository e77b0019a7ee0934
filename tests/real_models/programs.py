"""Runs Cria's programs for the checks of real models."""

import contextlib
import json
import os
import re
import subprocess
import urllib.request


class Failure(Exception):
    pass


def expect(condition, message, *details):
    if not condition:
        raise Failure("\n".join([message, *map(str, details)]))


class Programs:
    """Cria's programs, and a folder for the files that they make."""

    def __init__(self, cria, serve, convert, folder):
        self.cria_path = cria
        self.serve_path = serve
        self.convert_path = convert
        self.folder = folder

    def run(self, *command):
        done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        expect(done.returncode == 0, f"{' '.join(map(str, command))} exits with {done.returncode}",
               done.stderr.decode(errors="replace"))
        return done.stdout.decode(errors="replace")

    def cria(self, *arguments):
        return self.run(self.cria_path, *arguments)

    def json(self, *arguments):
        return json.loads(self.cria(*arguments, "--json"))

    def convert(self, checkpoint, name, *arguments):
        """The path of the new model file, and its size in bits per weight."""
        output = os.path.join(self.folder, name)
        said = self.run(self.convert_path, checkpoint, "-o", output, "--no-verify", *arguments)
        found = re.search(r"([0-9.]+) bits per weight", said)
        expect(found, "the converter says nothing about bits", said)
        return output, float(found.group(1))

    @contextlib.contextmanager
    def server(self, model, *arguments):
        """Starts cria-serve at a free port; yields its URL."""
        command = [self.serve_path, "-m", model, "--port", "0", *arguments]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                lines = []
                for line in server.stderr:
                    lines.append(line)
                    if found := re.search(r" at (http://\S+)", line):
                        yield found.group(1)
                        break
                else:
                    raise Failure("the server does not start\n" + "".join(lines))
            finally:
                server.terminate()
                # What it says at the end must not block it.
                server.communicate()


def post(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)
