#!/usr/bin/env python3
"""Makes random JSON Schemas, and asks Python's jsonschema about texts that they allow and about random values.

    random_schemas.py PROGRAM [--seed N] [--count N] [--texts N] [--values N] [--venv FOLDER]

PROGRAM is cria-sample-text. Without --venv, Python must have the package jsonschema; with it, a virtual environment
with the package is made in this folder, unless it is there. Fails if a text is not valid, if a random value is allowed
but not valid, or valid but refused in every order of its properties, or if too many schemas are refused.
"""

import argparse
import itertools
import json
import os
import random
import re
import subprocess
import sys
import venv

# Refusals that are documented, and contradictions, which random schemas often are.
EXPECTED_REFUSALS = [
    "contradiction", "'multipleOf'", "'minProperties'", "cannot be excluded together", "cannot be combined with another",
    "too many combinations", "too many alternatives", "no text", "too complex", "needs more memory", "refers to itself",
    "'uniqueItems'",
]
PATTERNS = ["^[a-c]+$", "b", "^x-", "[0-9]{2}", "^(foo|ba[rz])$", "y$", "^$", "^\\S{2,5}$", "\\u00e9|q"]
NAMES = ["a", "b", "kind", "long name", "", "é\"", "x-y", "q"]
SCALARS = [None, True, False, 0, 1, -2, 2.5, 1e3, -0.25, "", "a", "b", "foo", "x-y", "é\n\"\\"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.definitions = []

    def chance(self, probability):
        return self.random.random() < probability

    def some(self, items, low, high):
        return self.random.sample(items, min(len(items), self.random.randint(low, high)))

    def document(self):
        self.definitions = [f"d{i}" for i in range(self.random.randint(0, 2))]
        schema = self.schema(3)
        if isinstance(schema, dict) and self.definitions:
            schema["$defs"] = {name: self.schema(2) for name in self.definitions}
        return schema

    def schema(self, depth):
        if self.chance(0.04):
            return self.chance(0.8)
        if self.definitions and self.chance(0.1):
            return {"$ref": "#/$defs/" + self.random.choice(self.definitions)}
        schema = {}
        kind = self.random.choice(["null", "boolean", "integer", "number", "string", "array", "object", "object", "any"])
        if kind != "any" and self.chance(0.85):
            schema["type"] = kind if self.chance(0.8) else self.some(["null", "integer", "string", kind], 1, 3)
            if isinstance(schema["type"], list):
                schema["type"] = sorted(set(schema["type"]))
        kinds = [kind] if kind != "any" else ["integer", "string", "array", "object"]
        for each in kinds:
            getattr(self, "add_" + each, lambda *_: None)(schema, depth)
        if self.chance(0.08):
            schema["enum"] = self.some(SCALARS + [[1, "a"], {"a": 1}, {}], 1, 5)
        if self.chance(0.05):
            schema["const"] = self.constant(2)
        if depth > 0 and self.chance(0.3):
            self.add_combination(schema, depth - 1)
        keys = list(schema)
        self.random.shuffle(keys)
        return {key: schema[key] for key in keys}

    def constant(self, depth):
        kind = self.random.randint(0, 5) if depth > 0 else 0
        if kind == 4:
            return [self.constant(depth - 1) for _ in range(self.random.randint(0, 2))]
        if kind == 5:
            return {name: self.constant(depth - 1) for name in self.some(NAMES, 0, 2)}
        return self.random.choice(SCALARS)

    def add_combination(self, schema, depth):
        kind = self.random.choice(["allOf", "anyOf", "oneOf", "oneOf", "not", "if"])
        if kind == "not":
            schema["not"] = self.schema(depth)
        elif kind == "if":
            schema["if"] = self.schema(depth)
            if self.chance(0.8):
                schema["then"] = self.schema(depth)
            if self.chance(0.8):
                schema["else"] = self.schema(depth)
        else:
            schema[kind] = [self.schema(depth) for _ in range(self.random.randint(1, 3))]

    def add_integer(self, schema, depth):
        for keyword in self.some(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"], 0, 2):
            if keyword == "multipleOf":
                schema[keyword] = self.random.choice([1, 2, 5, 10, 0.5, 0.25, 100])
            else:
                schema[keyword] = self.random.choice([-100, -3, 0, 1, 2.5, 7, 12, 250, 1e6, -0.125])

    add_number = add_integer

    def add_string(self, schema, depth):
        for keyword in self.some(["minLength", "maxLength", "pattern", "format"], 0, 2):
            schema[keyword] = {
                "minLength": self.random.randint(0, 4), "maxLength": self.random.randint(0, 9),
                "pattern": self.random.choice(PATTERNS),
                "format": self.random.choice(["date", "ipv4", "ipv6", "uuid", "email", "unknown"]),
            }[keyword]

    def add_array(self, schema, depth):
        if depth == 0:
            return
        for keyword in self.some(["items", "prefixItems", "minItems", "maxItems", "contains"], 0, 3):
            if keyword == "prefixItems":
                schema[keyword] = [self.schema(depth - 1) for _ in range(self.random.randint(1, 3))]
            elif keyword in ("items", "contains"):
                schema[keyword] = self.schema(depth - 1)
            else:
                schema[keyword] = self.random.randint(0, 4)
        if "contains" in schema and self.chance(0.4):
            schema["minContains"] = self.random.randint(0, 2)
        if "contains" in schema and self.chance(0.4):
            schema["maxContains"] = self.random.randint(0, 3)

    def add_object(self, schema, depth):
        if depth == 0:
            return
        if self.chance(0.8):
            schema["properties"] = {name: self.schema(depth - 1) for name in self.some(NAMES, 0, 4)}
        if self.chance(0.5):
            schema["required"] = self.some(NAMES[:5], 0, 3)
        if self.chance(0.4):
            schema["additionalProperties"] = False if self.chance(0.5) else self.schema(depth - 1)
        for keyword in self.some(["minProperties", "maxProperties", "propertyNames", "patternProperties",
                                  "dependentRequired", "dependentSchemas"], 0, 1):
            schema[keyword] = {
                "minProperties": lambda: self.random.randint(0, 3),
                "maxProperties": lambda: self.random.randint(0, 4),
                "propertyNames": lambda: self.schema(0),
                "patternProperties": lambda: {p: self.schema(depth - 1) for p in self.some(PATTERNS, 1, 2)},
                "dependentRequired": lambda: {n: self.some(NAMES, 0, 2) for n in self.some(NAMES, 1, 2)},
                "dependentSchemas": lambda: {n: self.schema(depth - 1) for n in self.some(NAMES, 1, 2)},
            }[keyword]()


def with_jsonschema(folder):
    """Runs this script again with the Python of a virtual environment that has jsonschema."""
    python = os.path.join(folder, "bin", "python3")
    if not os.path.exists(python):
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "jsonschema"], check=True)
    if os.path.realpath(sys.prefix) != os.path.realpath(folder):
        os.execv(python, [python] + sys.argv)


def has_long_numbers(text):
    """Whether Python, which reads numbers as doubles, cannot tell what the numbers are."""
    return any(len(number.replace(".", "")) > 15 for number in re.findall(r"\d+\.\d+", text))


def is_valid(validator, value):
    """None if the schema refers to itself before it reads anything."""
    try:
        return validator.is_valid(value)
    except RecursionError:
        return None
    except BaseException as error:
        # The library for references has a part in Rust, which raises this when the stack ends.
        if type(error).__name__ != "PanicException":
            raise
        return None


def spellings(value):
    """The value with its properties in all orders."""
    if isinstance(value, list):
        for items in itertools.product(*(list(spellings(item)) for item in value)):
            yield "[" + ",".join(items) + "]"
    elif isinstance(value, dict):
        for names in itertools.permutations(value):
            for values in itertools.product(*(list(spellings(value[name])) for name in names)):
                members = [json.dumps(name, ensure_ascii=False) + ":" + text for name, text in zip(names, values)]
                yield "{" + ",".join(members) + "}"
    elif isinstance(value, float) and value.is_integer():
        yield str(int(value))
    else:
        yield json.dumps(value, ensure_ascii=False)


class Case:
    """A schema, values to compare with it, and what the program says."""

    def __init__(self, seed, values):
        maker = Maker(seed)
        self.schema = maker.document()
        self.values = [maker.constant(2) for _ in range(values)]
        self.values = [value for value in self.values if len(list(spellings(value))) <= 24]

    def lines(self):
        yield json.dumps(self.schema)
        for value in self.values:
            for text in spellings(value):
                yield "? " + text

    def read(self, lines):
        """Takes its lines from all."""
        self.texts, self.error, self.allowed = [], None, []
        while lines and lines[-1].startswith(("text ", "error ")):
            kind, _, rest = lines.pop().partition(" ")
            if kind == "error":
                self.error = rest
            else:
                self.texts.append(bytes.fromhex(rest).decode())
        for value in self.values:
            self.allowed.append("allowed" in [lines.pop() for _ in spellings(value)])

    def problems(self, jsonschema):
        validator = jsonschema.Draft202012Validator(
            self.schema, format_checker=jsonschema.FormatChecker(["date", "ipv4", "ipv6", "uuid", "email"]))
        for text in self.texts:
            if not has_long_numbers(text) and is_valid(validator, json.loads(text)) is False:
                yield f"not valid: {text}"
        if self.error and not any(expected in self.error for expected in EXPECTED_REFUSALS):
            yield f"refused: {self.error}"
        if self.error and "contradiction" not in self.error:
            return
        for value, is_allowed in zip(self.values, self.allowed):
            # Of the names that minProperties counts, schemas must list all but one.
            if not is_allowed and "minProperties" in json.dumps(self.schema):
                continue
            if is_valid(validator, value) not in (is_allowed, None):
                yield f"{'allows' if is_allowed else 'refuses'}: {json.dumps(value)}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--texts", type=int, default=10)
    parser.add_argument("--values", type=int, default=30)
    parser.add_argument("--venv")
    arguments = parser.parse_args()
    if arguments.venv:
        with_jsonschema(arguments.venv)
    import jsonschema

    cases = [Case(arguments.seed * 1_000_003 + i, arguments.values) for i in range(arguments.count)]
    lines = [line for case in cases for line in case.lines()]
    run = subprocess.run([arguments.program, str(arguments.seed), str(arguments.texts)], stdout=subprocess.PIPE,
                         input="".join(line + "\n" for line in lines), text=True, check=True)
    answers = run.stdout.splitlines()[::-1]
    failures = 0
    for case in cases:
        case.read(answers)
        for problem in case.problems(jsonschema):
            failures += 1
            print(f"{problem}\n  {json.dumps(case.schema)}")
    refused = sum(case.error is not None for case in cases)
    written = sum(len(case.texts) for case in cases)
    allowed = sum(sum(case.allowed) for case in cases)
    compared = sum(len(case.values) for case in cases)
    print(f"{len(cases)} schemas, {refused} refused; {written} texts; {compared} values, {allowed} allowed; "
          f"{failures} failures")
    if answers or failures or refused > len(cases) // 2 or written < len(cases):
        sys.exit(1)


if __name__ == "__main__":
    main()
