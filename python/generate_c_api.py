#!/usr/bin/env python3
"""Writes src/cria/_c_api.py, the ctypes declarations of the C API, from the header: generate_c_api.py [--check]

clang reads runtime/include/cria/cria.h, so that no struct, field, function or constant can be missed. With --check,
nothing is written, and the exit status is 1 if the file is out of date.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Optional, Tuple, Union

# A declaration or expression in clang's tree.
Node = Dict[str, Any]

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.dirname(HERE)
HEADER = os.path.join(SOURCES, "runtime", "include", "cria", "cria.h")
OUTPUT = os.path.join(HERE, "src", "cria", "_c_api.py")

# C's types of numbers: ctypes' and Python's.
NUMBERS = {"int": ("c_int", "int"), "size_t": ("c_size_t", "int"), "uint32_t": ("c_uint32", "int"),
           "int32_t": ("c_int32", "int"), "uint64_t": ("c_uint64", "int"), "float": ("c_float", "float"),
           "double": ("c_double", "float"), "cria_status": ("c_int", "int")}

BEGINNING = '''"""The ctypes declarations of cria.h, which generate_c_api.py wrote: do not change them by hand."""

from ctypes import (CDLL, CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_float, c_int, c_int32, c_size_t,
                    c_uint32, c_uint64, c_void_p, sizeof)
from typing import Any, ClassVar, Dict, List, Optional, Tuple

# The version of Cria whose header this is, and the number in the name of its library.
VERSION = "{version}"
SO_VERSION = {so_version}

# The constants of the header.
'''

VERSIONED = '''class _Versioned(Structure):
    """A struct of the caller's that has its size and the defaults of its ..._INIT."""

    _defaults_: ClassVar[Dict[str, Any]] = {}
    struct_size: int

    def __init__(self) -> None:
        super().__init__()
        self.struct_size = sizeof(self)
        for name, value in self._defaults_.items():
            setattr(self, name, value)'''

ENDING = '''def declare(library: CDLL) -> None:
    """Gives the functions of a loaded library their types; AttributeError if it lacks one."""
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments'''


def read_header(clang: str) -> List[Node]:
    """Returns the declarations of the header, as clang has them.

    A variable for each ..._INIT makes the defaults part of the tree.
    """
    with open(HEADER, encoding="utf-8") as file:
        macros = re.findall(r"^#define (CRIA_\w+)_INIT\b", file.read(), re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "source.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(f'#include "{HEADER}"\n')
            file.writelines(f"{macro.lower()} {macro}_DEFAULTS = {macro}_INIT;\n" for macro in macros)
        done = subprocess.run([clang, "-std=c99", "-fsyntax-only", "-Xclang", "-ast-dump=json", source],
                              stdout=subprocess.PIPE, check=True)
    # Unnamed enumerations have no name, but their constants have.
    return [node for node in json.loads(done.stdout)["inner"]
            if node.get("name", node.get("inner", [{}])[0].get("name", "")).lower().startswith("cria_")]


def value_of(node: Node) -> Optional[Union[int, float, str]]:
    """The value of a constant expression, or the name of a constant; None for a null pointer or a zero."""
    kind = node["kind"]
    if kind == "IntegerLiteral":
        return int(node["value"]) or None
    if kind == "FloatingLiteral":
        # The shortest decimal number that is this one as a float.
        return float(f"{float(node['value']):.7g}") or None
    if kind == "DeclRefExpr":
        return str(node["referencedDecl"]["name"])
    # A size is set at run time; a field that an ..._INIT leaves out is zero.
    if kind in ("UnaryExprOrTypeTraitExpr", "ImplicitValueInitExpr"):
        return None
    inner = value_of(node["inner"][0])
    is_negated = kind == "UnaryOperator" and node["opcode"] == "-"
    return -inner if is_negated and isinstance(inner, (int, float)) else inner


class Types:
    """What C's types are in Python."""

    def __init__(self, nodes: List[Node]) -> None:
        self.structs = {node["name"] for node in nodes
                        if node["kind"] == "RecordDecl" and node.get("completeDefinition")}
        self.handles = {node["name"] for node in nodes if node["kind"] == "RecordDecl"} - self.structs
        self.callbacks = {node["name"] for node in nodes
                          if node["kind"] == "TypedefDecl" and "(*)" in node["type"]["qualType"]}

    def translate(self, c_type: str, text: str) -> Tuple[str, str]:
        """The names of ctypes' type and of its value's; `text` is the type of a pointer to characters."""
        c_type = c_type.replace("const ", "").strip()
        if c_type in NUMBERS:
            return NUMBERS[c_type]
        if c_type in self.callbacks or c_type in self.structs:
            return c_type, "Any"
        if c_type == "void":
            return "None", "None"
        if c_type == "char *":
            return text, "Optional[bytes]" if text == "c_char_p" else "Any"
        if c_type.endswith("*"):
            pointed = c_type[:-1].strip()
            if pointed == "void" or pointed in self.handles:
                return "c_void_p", "Optional[int]"
            return f"POINTER({self.translate(pointed, text)[0]})", "Any"
        sys.exit(f"{HEADER} has the type '{c_type}', which {sys.argv[0]} does not know")


def fields_of(types: Types, node: Node) -> List[Tuple[str, str, str]]:
    # A pointer to characters is c_void_p, because ctypes would read c_char_p up to the first zero byte only.
    return [(field["name"], *types.translate(field["type"]["qualType"], "c_void_p"))
            for field in node["inner"] if field["kind"] == "FieldDecl"]


def declare_struct(types: Types, node: Node, defaults: Dict[str, List[Any]]) -> str:
    name, fields = node["name"], fields_of(types, node)
    is_versioned = name in defaults
    lines = [f"class {name}({'_Versioned' if is_versioned else 'Structure'}):"]
    lines += [f"    {field}: {python_type}" for field, _, python_type in fields
              if not (is_versioned and field == "struct_size")]
    values = {field: value for (field, _, _), value in zip(fields, defaults.get(name, [])) if value is not None}
    if values:
        lines += ["    _defaults_ = {", *(f'        "{field}": {value},' for field, value in values.items()), "    }"]
    lines += ["    _fields_ = [", *(f'        ("{field}", {ctype}),' for field, ctype, _ in fields), "    ]"]
    return "\n".join(lines)


def declare_callback(types: Types, node: Node) -> str:
    result, arguments = node["type"]["qualType"].rstrip(")").split("(*)(")
    names = [types.translate(c_type, "c_void_p")[0] for c_type in [result, *arguments.split(",")]]
    return f"{node['name']} = CFUNCTYPE({', '.join(names)})"


def declare_function(types: Types, node: Node) -> str:
    result = node["type"]["qualType"].split("(")[0]
    arguments = [types.translate(parameter["type"]["qualType"], "c_char_p")[0]
                 for parameter in node.get("inner", []) if parameter["kind"] == "ParmVarDecl"]
    return "\n".join([f'    "{node["name"]}": ({types.translate(result, "c_char_p")[0]}, [',
                      *(f"        {argument}," for argument in arguments), "    ]),"])


def number_in(path: str, expression: str) -> str:
    with open(os.path.join(SOURCES, path), encoding="utf-8") as file:
        found: List[str] = re.findall(expression, file.read(), re.MULTILINE)
    return found[0]


def declarations(clang: str) -> str:
    nodes = read_header(clang)
    types = Types(nodes)
    defaults = {node["type"]["qualType"]: [value_of(field) for field in node["inner"][0]["inner"]]
                for node in nodes if node["kind"] == "VarDecl"}
    constants: List[str] = []
    structs: List[str] = []
    functions: List[str] = []
    blocks: List[str] = []
    for node in nodes:
        if node["kind"] == "EnumDecl":
            constants += [f"{constant['name']} = {value_of(constant) or 0}" for constant in node["inner"]]
        elif node["kind"] == "RecordDecl" and node["name"] in types.structs:
            structs.append(f"    {node['name']},")
            blocks.append(declare_struct(types, node, defaults))
        elif node["kind"] == "TypedefDecl" and node["name"] in types.callbacks:
            blocks.append(declare_callback(types, node))
        elif node["kind"] == "FunctionDecl":
            functions.append(declare_function(types, node))
    beginning = BEGINNING.format(version=number_in("CMakeLists.txt", r"^project\(cria VERSION ([0-9.]+)"),
                                 so_version=number_in("runtime/c_api/CMakeLists.txt", r"SOVERSION (\d+)"))
    tables = ["FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {", *functions, "}",
              "STRUCTS: List[Any] = [", *structs, "]"]
    return "\n\n\n".join([beginning + "\n".join(constants), VERSIONED, *blocks, "\n".join(tables), ENDING]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the ctypes declarations of the C API")
    parser.add_argument("--check", action="store_true", help="only say whether the file is up to date")
    parser.add_argument("--clang", default="clang", help="the program clang")
    arguments = parser.parse_args()
    text = declarations(arguments.clang)
    if arguments.check:
        with open(OUTPUT, encoding="utf-8") as file:
            if file.read() != text:
                sys.exit(f"{OUTPUT} is out of date: run {os.path.relpath(__file__, SOURCES)}")
        return
    with open(OUTPUT, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
