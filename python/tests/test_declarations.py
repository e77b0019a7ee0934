"""The declarations and options have all of the header's functions, structs, fields and constants."""

import ctypes
import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Set

from conftest import SOURCES

import cria
from cria import _c_api, _errors, _library, _options, _results

HEADER = Path(SOURCES, "runtime", "include", "cria", "cria.h")


def fields(struct: Any) -> Set[str]:
    return {name for name, *_ in struct._fields_} - {"struct_size", "reserved", "reserved_2"}


def compile_program(source: Path, program: Path) -> None:
    compiler = shlex.split(os.environ.get("CC", "cc"))
    subprocess.run([*compiler, "-I", str(HEADER.parent.parent), str(source), "-o", str(program)], check=True)


def constants(prefix: str) -> Set[int]:
    return {value for name, value in vars(_c_api).items() if name.startswith(prefix)}


def test_the_declarations_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, os.path.join(SOURCES, "python", "generate_c_api.py"), "--check"],
                          stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_changed_declaration_is_noticed(tmp_path: Path) -> None:
    shutil.copytree(os.path.join(SOURCES, "runtime", "include"), tmp_path / "runtime" / "include")
    shutil.copytree(os.path.join(SOURCES, "python", "src"), tmp_path / "python" / "src")
    for name in ("CMakeLists.txt", "runtime/c_api/CMakeLists.txt", "python/generate_c_api.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.join(SOURCES, name), tmp_path / name)
    header = tmp_path / "runtime" / "include" / "cria" / "cria.h"
    text = header.read_text()
    for before, after in (("  uint64_t max_constraints;", "  uint64_t max_constraints; int32_t added;"),
                          ("   0.8f, ", "   0.7f, "),
                          ("CRIA_STOP_STRING = 4", "CRIA_STOP_STRING = 4, CRIA_STOP_ADDED = 5"),
                          ("CRIA_API uint32_t cria_chat_context_used", "CRIA_API int32_t cria_chat_context_used"),
                          ("CRIA_API void cria_chat_free", "CRIA_API void cria_a(int); CRIA_API void cria_chat_free"),
                          ("(*cria_text_callback)(const char* text, size_t", "(*cria_text_callback)(char* text, int")):
        assert text.count(before) == 1, before
        changed = text.replace(before, after)
        header.write_text(changed)
        done = subprocess.run([sys.executable, str(tmp_path / "python" / "generate_c_api.py"), "--check"],
                              stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 1 and "out of date" in done.stderr, (before, done.stderr)


def test_every_function_of_the_header_is_declared_and_called() -> None:
    functions = set(re.findall(r"^CRIA_API [^;(]*?(cria_\w+)\(", HEADER.read_text(), re.MULTILINE))
    assert len(functions) > 30
    assert functions == set(_c_api.FUNCTIONS)
    package = Path(cria.__file__).parent
    used = set()
    for path in package.glob("*.py"):
        if path.name != "_c_api.py":
            used |= set(re.findall(r"\b(?:library|_loaded)\.(cria_\w+)", path.read_text()))
    # Each of these has a function with a length beside it, which is called instead.
    shorter = {"cria_complete", "cria_chat_create", "cria_chat_send", "cria_tokenize"}
    assert used == functions - shorter


def test_structs_have_the_layout_of_the_compiler(tmp_path: Path) -> None:
    lines = []
    for struct in _c_api.STRUCTS:
        name = struct.__name__
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name}*)0)->{field}));'
                  for field, _ in struct._fields_]
    program = tmp_path / "layout.c"
    program.write_text('#include <stdio.h>\n#include "cria/cria.h"\nint main(void) {\n' + "\n".join(lines) + "\n}\n")
    compile_program(program, tmp_path / "layout")
    expected = subprocess.run([str(tmp_path / "layout")], stdout=subprocess.PIPE, text=True, check=True).stdout
    actual = []
    for struct in _c_api.STRUCTS:
        actual.append(f"{struct.__name__} {ctypes.sizeof(struct)}")
        for field, _ in struct._fields_:
            descriptor = getattr(struct, field)
            actual.append(f"{struct.__name__}.{field} {descriptor.offset} {descriptor.size}")
    assert actual == expected.splitlines()


def test_defaults_are_those_of_the_header(tmp_path: Path) -> None:
    header = HEADER.read_text()
    for struct in (_c_api.cria_model_options, _c_api.cria_generation_options, _c_api.cria_result):
        name = struct.__name__
        program = tmp_path / "defaults.c"
        program.write_text(f'#include <stdio.h>\n#include "cria/cria.h"\n{name} value = {name.upper()}_INIT;\n'
                           "int main(void) { fwrite(&value, sizeof value, 1, stdout); }\n")
        assert f"{name.upper()}_INIT" in header
        compile_program(program, tmp_path / "defaults")
        expected = subprocess.run([str(tmp_path / "defaults")], stdout=subprocess.PIPE, check=True).stdout
        assert bytes(struct()) == expected


def test_every_field_is_an_option() -> None:
    # The callbacks are arguments of Model, and the path is, too.
    assert set(_options.ModelOptions.__annotations__) == fields(_c_api.cria_model_options) - {
        "path", "on_progress", "on_notice", "callback_data"}
    counts = {"num_stop_strings", "num_logit_bias", "num_dry_sequence_breakers", "dry_no_sequence_breakers"}
    assert set(_options.GenerationOptions.__annotations__) - set(_options.CONSTRAINTS) == fields(
        _c_api.cria_generation_options) - {"constraint_kind", "constraint", "constraint_bytes"} - counts


def test_every_field_is_a_result() -> None:
    def names(kind: Any) -> Set[str]:
        return {field.name for field in dataclasses.fields(kind)}
    read = {"text", "tokens", "calls", "finish_reason"}
    assert names(_results.Result) - read == fields(_c_api.cria_result) - {"stop_reason"}
    assert names(_results.ModelInfo) == fields(_c_api.cria_model_info)
    assert names(_results.Plan) - {"parts", "info", "refusal"} == fields(_c_api.cria_plan_totals)


def test_every_constant_has_a_name() -> None:
    names: Dict[str, Set[int]] = {
        "CRIA_KV_": set(_options.KV_TYPES.values()),
        "CRIA_PACK_": set(_options.PACKINGS.values()),
        "CRIA_WHEN_FULL_": set(_options.WHEN_FULL.values()),
        "CRIA_STOP_": set(_results.FINISH_REASONS),
        "CRIA_ERROR_": set(_errors.CLASSES),
    }
    for prefix, values in names.items():
        assert values == constants(prefix) and values, prefix
    # "none" is that no constraint is given; "value" and "object" are those of `json`.
    assert len(_options.CONSTRAINTS) + 2 == len(constants("CRIA_CONSTRAINT_"))


def test_the_library_is_of_this_version() -> None:
    assert cria.library_version() == cria.__version__
    assert os.path.basename(os.path.realpath(os.environ["CRIA_LIBRARY"])).startswith(_library.NAME)
