#!/usr/bin/env python3
"""Adds an option of the engine, a tensor role and a family to a copy of the sources, and compiles what must know them:
check_additions.py SOURCES BUILD FLATC.

Each is a fact that has one row. Whoever adds one must not need more files than are changed here, and the compiler must
complain where a row is forgotten.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

# What is copied.
FOLDERS = ("schema", "runtime", "jinja", "grammar", "ranks", "converter", "cli", "platforms", "docs")

# NAME: most files; changes (file, the text before which is added, what is added); sources to compile and their targets;
# a change without which they must not compile.
ADDITIONS = {
    "an option of the engine": (3, [
        ("runtime/llm/engine.h", "  size_t chunk_tokens = DecoderOptions{}", "  size_t added_option = 0;\n"),
        ("runtime/llm/engine_fields.h", "&EngineOptions::num_threads", "&EngineOptions::added_option, "),
        ("runtime/llm/engine_fields.h", "f1, f2", "f0, "),
        ("runtime/llm/engine_fields.h", "23);", "1 + "),
        ("cli/flags/options.cc", "  xnn::PackingOptions& packing = options.packing;",
         '  command.AddNumber("--added-option", options.added_option, "An option").Group(group);\n'),
    ], {"ranks/ranked_loader.cc": "cria_ranks.dir", "cli/flags/options.cc": "cria_commands.dir",
        "runtime/llm/engine.cc": "cria_llm_cold.dir"}, "runtime/llm/engine_fields.h"),
    "a tensor role": (4, [
        ("schema/model.fbs", "  ExpertsDownBias = 61\n", "  AddedRole = 62,\n"),
        ("runtime/model/tensor_roles.h", "};\n\n// How products use", "  kAddedRole,\n"),
        ("runtime/model/tensor_roles.h", "};\ninline constexpr int kNumTensorRoles",
         '    TensorRoleRow{TensorRole::kAddedRole, "added_role", TensorForm::kVector, RanksHave::kAll},\n'),
        ("runtime/model/tensor_table.cc", "  if (config.o_bias) add(TensorRole::kOBias",
         "  if (config.o_bias) add(TensorRole::kAddedRole, 1, hidden);\n"),
        ("converter/write/tensor_map.cc", "    case TensorRole::kEmbedTokens:",
         '    case TensorRole::kAddedRole:\n      return {"added.weight"};\n'),
    ], {"converter/write/tensor_map.cc": "cria_converter_write.dir", "converter/write/metadata.cc": "cria_converter_write.dir",
        "runtime/model/tensor_table.cc": "cria_model_cold.dir"}, "converter/write/tensor_map.cc"),
    "a family": (3, [
        ("converter/hugging_face/hf_families.cc", '    Family{.architecture = "LlamaForCausalLM"',
         '    Family{.architecture = "AddedForCausalLM", .model_type = "added", .qk_norm = true},\n'),
        ("converter/gguf/gguf_architectures.cc", '    GgufArchitecture{.name = "qwen2"',
         '    GgufArchitecture{.name = "added", .hugging_face = "AddedForCausalLM", .qk_norm = true},\n'),
        ("docs/models.md", "`MistralForCausalLM`", "`AddedForCausalLM`, "),
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
        for path, before, added in changes:
            path = os.path.join(self.folder, path)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            if text.count(before) == 0:
                sys.exit(f"{path} has no \"{before}\" any more: say here where the row goes")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(before, added + before, 1))

    def compile(self, source, target):
        """Returns what the compiler says about a source; nothing if it is right."""
        command = next(entry for entry in self.commands if target in entry["command"] and "/tests/" not in entry["file"])
        words = shlex.split(command["command"])
        if os.path.basename(words[0]) == "ccache":
            words = words[1:]
        arguments, skips = [], 0
        for word in words:
            if skips or word in ("-o", "-c", "-include"):
                skips = 0 if skips else 1
            elif word not in ("-Winvalid-pch", "-fpch-preprocess"):
                for before, after in ((os.path.join(self.build, "include-roots"), os.path.join(self.folder, "include-roots")),
                                      (os.path.join(self.build, "schema/generated"), os.path.join(self.folder, "generated")),
                                      (self.sources, self.folder)):
                    if before in word and not word.startswith("-fmacro-prefix-map"):
                        word = word.replace(before, after)
                        break
                arguments.append(word)
        done = subprocess.run([*arguments, "-O0", "-fsyntax-only", os.path.join(self.folder, source)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.stdout if done.returncode else ""

    def generate(self):
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
