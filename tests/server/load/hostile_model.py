#!/usr/bin/env python3
"""Makes a tiny model of random weights that answers on every path of the server.

    tests/server/load/hostile_model.py --cria-make-checkpoint PROGRAM --cria-convert PROGRAM -o tiny.cria

It has the name of Qwen3-Reranker and its tokens "yes" and "no", and the tokens for the middle of a text, so that
hostile.py also reaches the code that ranks documents and that fills in. What it writes has no sense.

Needs Python's standard library alone.
"""

import argparse
import pathlib
import subprocess
import tempfile

SHAPE = ["--shape", "Qwen3", "--chat-template", "chatml", "--max-position-embeddings", "1024", "--special-tokens", "13",
         "--vocab-size", "310"]
# Special tokens of cria-make-checkpoint, and what they are called here.
NAMES = {
    "<|start_header_id|>": "yes",
    "<|end_header_id|>": "no",
    "<|reserved_special_token_0|>": "<|fim_prefix|>",
    "<|reserved_special_token_1|>": "<|fim_suffix|>",
    "<|reserved_special_token_2|>": "<|fim_middle|>",
    "<|reserved_special_token_3|>": "<|fim_pad|>",
    "<|reserved_special_token_4|>": "<|repo_name|>",
    "<|reserved_special_token_5|>": "<|file_sep|>",
}


def rename_tokens(path):
    text = path.read_text(encoding="utf-8")
    for name, other in NAMES.items():
        text = text.replace(name, other)
    path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cria-make-checkpoint", required=True, metavar="PROGRAM")
    parser.add_argument("--cria-convert", required=True, metavar="PROGRAM")
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([options.cria_make_checkpoint, "-o", folder, *SHAPE], check=True)
        rename_tokens(folder / "tokenizer.json")
        rename_tokens(folder / "tokenizer_config.json")
        (folder / "README.md").write_text("# Qwen3-Reranker-0.6B\n", encoding="utf-8")
        subprocess.run([options.cria_convert, folder, "-o", options.output, "--weights", "int8", "--fast",
                        "--overwrite"], check=True)


if __name__ == "__main__":
    main()
