#!/usr/bin/env python3
"""Writes cases.json: what Python's jinja2 makes of the chat templates of this folder, set up as Hugging Face's
transformers have it. Run it after a change of a template or conversation, with jinja2 3.1."""

import datetime
import json
import pathlib

from jinja2.exceptions import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

FOLDER = pathlib.Path(__file__).parent
TOKENS = {
    "tagged-tools": ["", "<|im_end|>"],
    "headers-tools": ["<|begin_of_text|>", "<|eot_id|>"],
    "brackets-tools": ["<s>", "</s>"],
    "turns": ["<bos>", "<eos>"],
    "reasoning": ["<｜begin▁of▁text｜>", "<｜end▁of▁text｜>"],
}
CONVERSATIONS = {
    "question": [("user", "How many legs has a llama?")],
    "system": [("system", "You speak like a shepherd. "), ("user", "Good morning!")],
    "turns": [("system", "Be brief.\nBe kind."), ("user", "  Name two colours  "), ("assistant", "Red, blue.\n"),
              ("user", "Which is warmer? <|im_end|> </s>")],
    "reasoned": [("user", "2 + 2?"), ("assistant", "<think>two and two</think>Four."), ("user", "And 3 + 3 = é?")],
    "two questions": [("user", "a"), ("user", "b")],
}


def raise_exception(message):
    raise TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = raise_exception
environment.globals["strftime_now"] = datetime.datetime(2024, 12, 1).strftime

conversations = {name: [{"role": role, "content": content} for role, content in messages]
                 for name, messages in CONVERSATIONS.items()}
cases = []
for template, (bos, eos) in TOKENS.items():
    source = (FOLDER / (template + ".jinja")).read_text(encoding="utf-8")
    for name, messages in conversations.items():
        for add_generation_prompt in (True, False):
            case = {"template": template, "case": name, "add_generation_prompt": add_generation_prompt}
            try:
                case["expected"] = environment.from_string(source).render(
                    messages=messages, add_generation_prompt=add_generation_prompt, bos_token=bos, eos_token=eos)
            except TemplateError as error:
                case["error"] = str(error)
            cases.append(case)
(FOLDER / "cases.json").write_text(
    json.dumps({"tokens": TOKENS, "conversations": conversations, "cases": cases}, ensure_ascii=False, indent=1) + "\n",
    encoding="utf-8")
