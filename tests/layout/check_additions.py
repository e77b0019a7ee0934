#!/usr/bin/env python3
"""Adds an option of the engine, a tensor role and a family to a copy of the sources, and compiles what must know them:
check_additions.py SOURCES BUILD FLATC.

Each is a fact that has one row, and the compiler must complain where a row is forgotten. In how many files the rows are
is a promise of CONTRIBUTING.md: whoever must add a file to a list below raises its number on purpose, here and there.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

# What is copied.
FOLDERS = ("schema", "runtime", "jinja", "grammar", "ranks", "converter", "cli", "platforms", "docs")

ENGINE_FIELDS = "ranks/engine_fields.h"

# NAME: most files; changes (file, a regular expression, what takes the place of its first match); sources to compile and
# their targets; a file without whose changes they must not compile.
ADDITIONS = {
    "an option of the engine": (3, [
        ("runtime/llm/engine.h", r"  size_t chunk_tokens = ", r"  size_t added_option = 0;\n\g<0>"),
        (ENGINE_FIELDS, r"&EngineOptions::num_threads", r"&EngineOptions::added_option, \g<0>"),
        (ENGINE_FIELDS, r"auto& \[", r"\g<0>f0, "),
        (ENGINE_FIELDS, r"==\s+(\d+)\);", r"== \1 + 1);"),
        ("cli/flags/options.cc", r"  xnn::PackingOptions& packing = options\.packing;",
         r'  command.AddNumber("--added-option", options.added_option, "An option").Group(group);\n\g<0>'),
    ], {"ranks/ranked_loader.cc": "cria_ranks.dir", "cli/flags/options.cc": "cria_program.dir",
        "runtime/llm/engine.cc": "cria_llm_cold.dir"}, ENGINE_FIELDS),
    "a tensor role": (4, [
        # flatc gives it the number after that of the last role.
        ("schema/model.fbs", r"(enum TensorRole [^}]*\w)\n}", r"\1,\n  AddedRole\n}"),
        ("runtime/model/tensor_roles.h", r"};\n\n// How products use", r"  kAddedRole,\n\g<0>"),
        ("runtime/model/tensor_roles.h", r"};\ninline constexpr int kNumTensorRoles",
         r'    TensorRoleRow{TensorRole::kAddedRole, "added_role", TensorForm::kVector, RanksHave::kAll},\n\g<0>'),
        ("runtime/model/tensor_table.cc", r"  if \(config\.o_bias\) add\(TensorRole::kOBias",
         r"  if (config.o_bias) add(TensorRole::kAddedRole, 1, hidden);\n\g<0>"),
        ("converter/write/tensor_map.cc", r"    case TensorRole::kEmbedTokens:",
         r'    case TensorRole::kAddedRole:\n      return {"added.weight"};\n\g<0>'),
    ], {"converter/write/tensor_map.cc": "cria_converter_write.dir", "converter/write/metadata.cc": "cria_converter_write.dir",
        "runtime/model/tensor_table.cc": "cria_model_cold.dir"}, "converter/write/tensor_map.cc"),
    "a family": (3, [
        ("converter/hugging_face/hf_families.cc", r'    Family{\.architecture = "LlamaForCausalLM"',
         r'    Family{.architecture = "AddedForCausalLM", .model_type = "added", .qk_norm = true},\n\g<0>'),
        ("converter/gguf/gguf_architectures.cc", r'    GgufArchitecture{\.name = "qwen2"',
         r'    GgufArchitecture{.name = "added", .hugging_face = "AddedForCausalLM", .qk_norm = true},\n\g<0>'),
        ("docs/models.md", r"\| `MistralForCausalLM`", r"| `AddedForCausalLM` | `added` | `added` |  |\n\g<0>"),
    ], {"converter/hugging_face/hf_families.cc": "cria_converter_hugging_face.dir",
        "converter/gguf/gguf_architectures.cc": "cria_converter_gguf.dir"}, None),
}


class Copy:
    """A copy of the sources in `folder`, with the include roots of the build."""

    def __init__(self, sources, build, flatc, folder):
        self.sources, self.build, self.flatc, self.folder = sources, build, flatc, folder
        for name in FOLDERS:
            shutil.copytree(os.path.join(sources, name), os.path.join(folder, name))
        roots = os.path.join(build, "include-roots")
        for outer, folders, files in os.walk(roots):
            for name in folders + files:
                link = os.path.join(outer, name)
                copy = os.path.join(folder, "include-roots", os.path.relpath(link, roots))
                if os.path.islink(link):
                    os.makedirs(os.path.dirname(copy), exist_ok=True)
                    os.symlink(os.path.realpath(link).replace(sources, folder, 1), copy)
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            self.commands = json.load(file)

    def change(self, changes):
        for path, expression, replacement in changes:
            path = os.path.join(self.folder, path)
            with open(path, encoding="utf-8") as file:
                text, count = re.subn(expression, replacement, file.read(), count=1)
            if count == 0:
                sys.exit(f"{path} has no match of \"{expression}\" any more: say in ADDITIONS where the row goes")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def compile(self, source, target):
        """Returns what the compiler says about a source; nothing if it is right."""
        command = next((entry for entry in self.commands
                        if f"/{target}/" in entry["command"] and "/tests/" not in entry["file"]), None)
        if command is None:
            sys.exit(f"no command compiles for {target}: name in ADDITIONS the target of {source}")
        words = shlex.split(command["command"])
        if os.path.basename(words[0]) == "ccache":
            words = words[1:]
        arguments, is_left_out = [], False
        for word in words:
            if is_left_out:
                # The value of an option that is left out, too.
                is_left_out = False
            elif word in ("-o", "-c"):
                is_left_out = True
            else:
                for before, after in ((os.path.join(self.build, "include-roots"), os.path.join(self.folder, "include-roots")),
                                      (os.path.join(self.build, "schema/generated"), os.path.join(self.folder, "generated")),
                                      (self.sources, self.folder)):
                    # Precompiled headers are none of the project's.
                    if before in word and not word.startswith("-fmacro-prefix-map") and "cmake_pch" not in word:
                        word = word.replace(before, after)
                        break
                arguments.append(word)
        done = subprocess.run([*arguments, "-fsyntax-only", os.path.join(self.folder, source)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.stdout if done.returncode else ""

    def generate(self):
        """Generates the headers with flatc's options of schema/CMakeLists.txt."""
        for name in ("model", "packed"):
            subprocess.run([self.flatc, "--cpp", "--scoped-enums", "--reflect-names", "--no-warnings", "-o",
                            os.path.join(self.folder, "generated"), os.path.join(self.folder, "schema", f"{name}.fbs")],
                           check=True)


def check(name, sources, build, flatc):
    most, changes, compiled, needed = ADDITIONS[name]
    files = {path for path, _, _ in changes}
    if len(files) > most:
        sys.exit(f"{name} needs {len(files)} files: {', '.join(sorted(files))}")
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(sources, build, flatc, os.path.realpath(folder))
        if needed:
            copy.change([change for change in changes if change[0] != needed])
            copy.generate()
            if not any(copy.compile(*each) for each in compiled.items()):
                sys.exit(f"{name} compiles without {needed}")
            copy.change([change for change in changes if change[0] == needed])
        else:
            copy.change(changes)
            copy.generate()
        for source, target in compiled.items():
            said = copy.compile(source, target)
            if said:
                sys.exit(f"{name}: {source} does not compile:\n{said}")
    print(f"{name}: {len(files)} files")


def main():
    sources, build, flatc = (os.path.realpath(path) for path in sys.argv[1:])
    for name in ADDITIONS:
        check(name, sources, build, flatc)


if __name__ == "__main__":
    main()
