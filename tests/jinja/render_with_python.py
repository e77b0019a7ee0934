"""Renders templates with Python's jinja2, set up as Hugging Face's transformers have it.

Reads a JSON list of templates, and writes one of {"text": …} or {"error": …}. The variables are those of
render_support.h.
"""
import copy
import datetime
import json
import sys

from jinja2.exceptions import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


def raise_exception(message):
    raise TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                            extensions=[loopcontrols])
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = raise_exception
environment.globals["strftime_now"] = datetime.datetime(2024, 12, 1, 15, 4, 5).strftime
variables = {
    "user": "<u>Öl</u>", "empty": "", "words": ["b", "a", "C"], "numbers": [3, 1, 2], "nothing": None,
    "messages": [{"role": "user", "content": " Hi "}, {"role": "assistant", "content": "Yes?"}],
}


def render(source):
    try:
        return {"text": environment.from_string(source).render(**copy.deepcopy(variables))}
    except Exception as error:  # pylint: disable=broad-except
        return {"error": str(error)}


json.dump([render(source) for source in json.load(sys.stdin)], sys.stdout)
