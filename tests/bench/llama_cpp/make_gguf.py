#!/usr/bin/env python3
"""Writes a GGUF of random weights in the shape of a Hugging Face config.json, all matrices Q4_0.

It is for measuring speed only. Needs the Python packages gguf and numpy.

    make_gguf.py CHECKPOINT_FOLDER OUTPUT.gguf [--head q4_0|q8_0]
"""

import argparse
import json
import pathlib

import gguf
import numpy as np
from llama_gguf import finish, open_writer

BLOCK = 32


def random_blocks(random, shape, kind):
    """Blocks of 32 weights: an f16 scale, then 4-bit or 8-bit integers."""
    rows, columns = shape
    weight_bytes = BLOCK // 2 if kind == gguf.GGMLQuantizationType.Q4_0 else BLOCK
    blocks = random.integers(0, 256, (rows, columns // BLOCK, 2 + weight_bytes), dtype=np.uint8)
    scales = random.uniform(0.001, 0.01, (rows, columns // BLOCK, 1)).astype(np.float16)
    blocks[:, :, :2] = scales.view(np.uint8)
    return blocks.reshape(rows, -1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("output")
    parser.add_argument("--head", choices=["q4_0", "q8_0"], default="q4_0")
    arguments = parser.parse_args()
    config = json.loads((arguments.checkpoint / "config.json").read_text())
    hidden = config["hidden_size"]
    heads = config["num_attention_heads"]
    key_value_heads = config.get("num_key_value_heads", heads)
    head_dim = config.get("head_dim") or hidden // heads
    layers = config["num_hidden_layers"]
    intermediate = config["intermediate_size"]
    vocabulary = config["vocab_size"]

    random = np.random.default_rng(1)
    writer = open_writer(arguments.output, config)
    writer.add_tokenizer_model("none")

    def add_norm(name):
        writer.add_tensor(name, np.ones(hidden, np.float32))

    def add_matrix(name, outputs, inputs, kind=gguf.GGMLQuantizationType.Q4_0):
        writer.add_tensor(name, random_blocks(random, (outputs, inputs), kind), raw_dtype=kind)

    # Tied: the embedding is also the head.
    add_matrix("token_embd.weight", vocabulary, hidden,
               gguf.GGMLQuantizationType[arguments.head.upper()])
    add_norm("output_norm.weight")
    for layer in range(layers):
        prefix = f"blk.{layer}."
        add_norm(prefix + "attn_norm.weight")
        add_norm(prefix + "ffn_norm.weight")
        add_matrix(prefix + "attn_q.weight", heads * head_dim, hidden)
        add_matrix(prefix + "attn_k.weight", key_value_heads * head_dim, hidden)
        add_matrix(prefix + "attn_v.weight", key_value_heads * head_dim, hidden)
        add_matrix(prefix + "attn_output.weight", hidden, heads * head_dim)
        add_matrix(prefix + "ffn_gate.weight", intermediate, hidden)
        add_matrix(prefix + "ffn_up.weight", intermediate, hidden)
        add_matrix(prefix + "ffn_down.weight", hidden, intermediate)
    finish(writer)


if __name__ == "__main__":
    main()
