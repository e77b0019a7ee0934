#!/usr/bin/env python3
"""Writes byte_level_ids.json, with which tokenizer_golden_test compares: what Hugging Face's library `tokenizers` makes
of our own texts with a made-up byte-level vocabulary and the pre-tokenizers of several families.

    ./dev shell build/release/tests/support/cria-make-checkpoint --shape Mha --vocab-size 2000 -o FOLDER
    tests/text/make_byte_level_ids.py FOLDER/tokenizer.json

Run it by hand, where `tokenizers` is installed, after a change of the texts or of that vocabulary."""

import json
import pathlib
import sys

import tokenizers

LETTERS_THEN_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"


def byte_level(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def split(regex):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def sequence(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


DIGITS = {"type": "Digits", "individual_digits": True}
NFC = {"type": "NFC"}
# By the name that GGUF files have for it: the normalizer and the pre-tokenizer of tokenizer.json.
FAMILIES = {
    "gpt-2": (None, byte_level(True)),
    "llama-bpe": (None, sequence(split(CONTRACTIONS + r"\p{N}{1,3}|" + LETTERS_THEN_SIGNS), byte_level(False))),
    "qwen2": (NFC, sequence(split(CONTRACTIONS + r"\p{N}|" + LETTERS_THEN_SIGNS), byte_level(False))),
    "mpt": (NFC, byte_level(True)),
    "starcoder": (None, sequence(DIGITS, byte_level(True))),
    "deepseek-coder": (None, sequence(split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"),
                                      split(r"[一-龥ࠀ-一가-힟]+"), DIGITS, byte_level(False))),
}
TEXTS = [
    "", " ", "  ", "   ", "\t", "\n", "\n\n", " \n \n\n x", "Hello, world!", "the llama and the others",
    " the  two   spaces before", "I'm sure they'LL say it's WE'VE'd", "don't 'tis rock 'n' roll's",
    "1 12 123 1234 12345 3.14 1,000,000", "x1y22z333", "½ ² ٣٤ 五", "price: $5.00 (20% off)!!! #1",
    "if (a<b) {\n\treturn a[0]; // here\n}\n", "snake_case camelCase SCREAMING_CASE", "a\r\nb\rc\n\r",
    "über naïve façade Ærø", "e\u0301 = é, A\u030a = Å, ½\u0301", "Ελληνικά и кириллица", "日本語のテキスト、中文和한국어",
    "नमस्ते दुनिया", "مرحبا بالعالم", "😀👍🏽 👩‍👩‍👧 🇨🇭!", "\u00a0no-break\u00a0\u3000wide\u2003em", "zero\u200bwidth\ufeffmark",
    "a" * 40, "ab" * 25 + " " + "hehe" * 9, "....!!!!????", "--- === ___ ***", "'" * 5 + "s't", "end with spaces   ",
    "<|im_start|>not special here<|im_end|>", "Ǆ ﬁ Ⅳ ß ẞ", "\u0000\u0001\u007f", "mixed\u0301 ça2va 3D-8K x²+y³",
]


def main():
    base = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    vocab_size = len(base["model"]["vocab"]) + len(base["added_tokens"])
    families = {}
    for name, (normalizer, pre_tokenizer) in FAMILIES.items():
        rules = {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer}
        definition = base | rules
        definition["model"] = base["model"] | {"ignore_merges": name == "llama-bpe"}
        definition["added_tokens"] = []
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(definition | {"post_processor": None}))
        families[name] = rules | {"ids": [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]}
    lines = [f'"vocab_size": {vocab_size}', f'"made_by": "tokenizers {tokenizers.__version__}"',
             '"texts": [\n' + ",\n".join(json.dumps(text) for text in TEXTS) + "]"]
    for name, family in families.items():
        ids = ",\n".join(json.dumps(ids, separators=(",", ":")) for ids in family["ids"])
        lines.append(f'"{name}": {{"normalizer": {json.dumps(family["normalizer"])},\n'
                     f'"pre_tokenizer": {json.dumps(family["pre_tokenizer"])},\n"ids": [\n{ids}]}}')
    (pathlib.Path(__file__).parent / "byte_level_ids.json").write_text("{" + ",\n".join(lines) + "}\n",
                                                                       encoding="utf-8")


main()
