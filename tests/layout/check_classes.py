#!/usr/bin/env python3
"""Bounds the members and functions of the classes in the folders that run and serve models.

A class with more of either is a hub through which everything goes. The exceptions say in their headers why they have
more. Counts declarations in the class body itself, by their punctuation, but not constructors, destructors and
assignments.
"""
import pathlib
import re
import sys

MOST_MEMBERS = 15
MOST_FUNCTIONS = 25
FOLDERS = ["runtime/decode", "runtime/llm", "server/answers", "server/api", "server/calls", "server/requests"]
EXCEPTIONS = {"Decoder", "EngineOptions", "KvPageGroup", "KvPages", "Sequences"}
HEAD = re.compile(r"\b(?:class|struct)\s+(\w+)(?:\s+final)?\s*(?::[^;{]*)?$")
NO_DECLARATION = re.compile(r"^(using|friend|static_assert|typedef|enum|template\s*<[^>]*>\s*(class|struct)|class|struct)\b")


def without_comments_and_texts(text):
    text = re.sub(r"//[^\n]*|^\s*#[^\n]*", "", text, flags=re.M)
    return re.sub(r'"(\\.|[^"\\])*"', '""', text)


def is_function(declaration):
    """A declaration with parentheses outside of template arguments and before any initial value."""
    plain = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", declaration))
    return "(" in re.split(r"[={]", re.sub(r"operator\s*\S+?\(", "operator(", plain))[0]


def is_special(declaration, name):
    """A constructor, destructor or assignment."""
    return re.search(rf"(^|[\s~]){name}\s*\(|\boperator=\s*\(", declaration) is not None


def classes_in(text):
    """Yields the name, the number of members and the number of functions of each class."""
    stack = []  # What each open brace began: [name or None, members, functions].
    start = 0
    i = 0
    while i < len(text):
        c = text[i]
        if c == "{":
            head = " ".join(text[start:i].split())
            head = re.sub(r"^((public|private|protected)\s*:\s*)+", "", head)
            name = HEAD.search(head)
            inside = stack and stack[-1][0]
            if name and not is_function(head):
                stack.append([name.group(1), 0, 0])
            else:
                # The body of a function, or the initial value of a member, which its semicolon counts.
                if inside and is_function(head) and not is_special(head, stack[-1][0]):
                    stack[-1][2] += 1
                stack.append([None, 0, 0])
                depth, j = 1, i + 1
                while depth and not head.startswith("namespace"):
                    depth += {"{": 1, "}": -1}.get(text[j], 0)
                    j += 1
                if not head.startswith("namespace"):
                    stack.pop()
                    i = j
                    if inside and not is_function(head):
                        continue  # `start` stays: the declaration goes on to its semicolon.
                    start = i
                    continue
            start = i + 1
        elif c == "}":
            name, members, functions = stack.pop()
            if name:
                yield name, members, functions
            start = i + 1
        elif c == ";":
            declaration = " ".join(text[start:i].split())
            declaration = re.sub(r"^((public|private|protected)\s*:\s*)+", "", declaration)
            if stack and stack[-1][0] and declaration and not NO_DECLARATION.match(declaration):
                if is_function(declaration):
                    stack[-1][2] += not is_special(declaration, stack[-1][0])
                elif not declaration.startswith("static"):
                    stack[-1][1] += 1
            start = i + 1
        i += 1


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    found, counted, failures = set(), 0, 0
    for folder in FOLDERS:
        for header in sorted((root / folder).glob("*.h")):
            for name, members, functions in classes_in(without_comments_and_texts(header.read_text())):
                counted += 1
                if members <= MOST_MEMBERS and functions <= MOST_FUNCTIONS:
                    continue
                found.add(name)
                if name not in EXCEPTIONS:
                    failures += 1
                    print(f"{header.relative_to(root)}: {name} has {members} members and {functions} functions; "
                          f"{MOST_MEMBERS} and {MOST_FUNCTIONS} are the most")
    for name in sorted(EXCEPTIONS - found):
        failures += 1
        print(f"{name} is no exception any more: take it out of {pathlib.Path(__file__).name}")
    if counted < 100:
        failures += 1
        print(f"only {counted} classes were found")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
