#!/usr/bin/env python3
"""Writes a GGUF that llama-server can chat with: a checkpoint of a Llama, its tokenizer and chat template.

    text_gguf.py CHECKPOINT_FOLDER OUTPUT.gguf && llama-quantize OUTPUT.gguf OUTPUT-q4_0.gguf q4_0

The checkpoint is Hugging Face's, with one model.safetensors, and a SentencePiece tokenizer.model or a tokenizer.json with
Llama 3's byte-level BPE. The weights are written as f32. Needs the Python packages gguf, numpy and sentencepiece.
"""

import argparse
import json
import pathlib

import gguf
from llama_gguf import finish, open_writer
from requantize import gguf_name, read_tensors
from sentencepiece import SentencePieceProcessor


def in_adjacent_pairs(matrix, head_dim):
    """Rows of queries or keys: rotary pairs are the halves of a head in Hugging Face's order, neighbours in GGUF's."""
    halves = matrix.reshape(-1, 2, head_dim // 2, matrix.shape[-1])
    return halves.swapaxes(1, 2).reshape(matrix.shape)


def piece_type(pieces, token):
    if pieces.IsUnknown(token):
        return gguf.TokenType.UNKNOWN
    if pieces.IsControl(token):
        return gguf.TokenType.CONTROL
    return gguf.TokenType.BYTE if pieces.IsByte(token) else gguf.TokenType.NORMAL


def add_sentence_pieces(writer, folder, settings):
    pieces = SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    tokens = [pieces.IdToPiece(token) for token in range(pieces.GetPieceSize())]
    scores = [pieces.GetScore(token) for token in range(pieces.GetPieceSize())]
    types = [piece_type(pieces, token) for token in range(pieces.GetPieceSize())]
    for token, added in settings.get("added_tokens_decoder", {}).items():
        if int(token) < len(tokens):
            tokens[int(token)], types[int(token)] = added["content"], gguf.TokenType.CONTROL
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_add_space_prefix(settings.get("add_prefix_space", True))


def add_byte_pairs(writer, folder):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokens = {token: text for text, token in tokenizer["model"]["vocab"].items()}
    types = dict.fromkeys(tokens, gguf.TokenType.NORMAL)
    for added in tokenizer["added_tokens"]:
        tokens[added["id"]], types[added["id"]] = added["content"], gguf.TokenType.CONTROL
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list([tokens[token] for token in sorted(tokens)])
    writer.add_token_types([types[token] for token in sorted(tokens)])
    writer.add_token_merges(merges)


def add_tokenizer(writer, folder, config):
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    if (folder / "tokenizer.model").exists():
        add_sentence_pieces(writer, folder, settings)
    else:
        add_byte_pairs(writer, folder)
    writer.add_bos_token_id(config["bos_token_id"])
    stops = config["eos_token_id"]
    writer.add_eos_token_id(stops if isinstance(stops, int) else stops[0])
    writer.add_add_bos_token(settings.get("add_bos_token", True))
    if "chat_template" in settings:
        writer.add_chat_template(settings["chat_template"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("output")
    arguments = parser.parse_args()
    config = json.loads((arguments.checkpoint / "config.json").read_text())
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer = open_writer(arguments.output, config)
    add_tokenizer(writer, arguments.checkpoint, config)
    for name, values in read_tensors(arguments.checkpoint / "model.safetensors").items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            values = in_adjacent_pairs(values, head_dim)
        writer.add_tensor(gguf_name(name), values)
    finish(writer)


if __name__ == "__main__":
    main()
