#!/usr/bin/env python3
"""Writes a GGUF of random weights in the shape of a Hugging Face config.json, all matrices Q4_0.

It is for measuring speed only, of Llamas and of Qwen3-MoE, and the file has no tokenizer; cria-make-checkpoint
writes files of other families. Routers of Qwen3-MoE are f32; with --router-skew S, the weights of expert e are
divided by (e + 1)^S, as in cria-make-checkpoint. Needs the Python packages gguf and numpy.

    make_gguf.py CHECKPOINT_FOLDER OUTPUT.gguf [--head q4_0|q8_0] [--router-skew S]
"""

import argparse
import json
import pathlib

import gguf
import numpy as np
from llama_gguf import finish, open_writer

BLOCK = 32


def random_blocks(random, shape, kind, scale=1.0):
    """Blocks of 32 weights: an f16 scale, then 4-bit or 8-bit integers, as often negative as positive."""
    *rows, columns = shape
    blocks = (*rows, columns // BLOCK)
    scales = (scale * random.uniform(0.001, 0.01, (*blocks, 1))).astype(np.float16)
    if kind == gguf.GGMLQuantizationType.Q4_0:
        low, high = random.integers(1, 16, (2, *blocks, BLOCK // 2), dtype=np.uint8)
        weights = low | high << 4
    else:
        weights = random.integers(-127, 128, (*blocks, BLOCK), dtype=np.int8).view(np.uint8)
    return np.concatenate([scales.view(np.uint8), weights], axis=-1).reshape(*rows, -1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("output")
    parser.add_argument("--head", choices=["q4_0", "q8_0"], default="q4_0")
    parser.add_argument("--router-skew", type=float, default=0.0)
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

    def add_norm(name, channels=hidden):
        writer.add_tensor(name, np.ones(channels, np.float32))

    def add_matrix(name, *shape, kind=gguf.GGMLQuantizationType.Q4_0, scale=1.0):
        writer.add_tensor(name, random_blocks(random, shape, kind, scale), raw_dtype=kind)

    def add_experts(prefix):
        experts, width = config["num_experts"], config["moe_intermediate_size"]
        router = random.normal(0, 0.02, (experts, hidden)).astype(np.float32)
        router /= np.arange(1, experts + 1, dtype=np.float32)[:, None] ** arguments.router_skew
        writer.add_tensor(prefix + "ffn_gate_inp.weight", router)
        add_matrix(prefix + "ffn_gate_exps.weight", experts, width, hidden)
        add_matrix(prefix + "ffn_up_exps.weight", experts, width, hidden)
        add_matrix(prefix + "ffn_down_exps.weight", experts, hidden, width)

    head_kind = gguf.GGMLQuantizationType[arguments.head.upper()]
    is_tied = config.get("tie_word_embeddings", False)
    add_matrix("token_embd.weight", vocabulary, hidden,
               kind=head_kind if is_tied else gguf.GGMLQuantizationType.Q4_0,
               # Large beside the layers' outputs, so that tokens differ and choose different experts.
               scale=45.0 if "num_experts" in config else 1.0)
    if not is_tied:
        add_matrix("output.weight", vocabulary, hidden, kind=head_kind)
    add_norm("output_norm.weight")
    for layer in range(layers):
        prefix = f"blk.{layer}."
        add_norm(prefix + "attn_norm.weight")
        add_norm(prefix + "ffn_norm.weight")
        add_matrix(prefix + "attn_q.weight", heads * head_dim, hidden)
        add_matrix(prefix + "attn_k.weight", key_value_heads * head_dim, hidden)
        add_matrix(prefix + "attn_v.weight", key_value_heads * head_dim, hidden)
        add_matrix(prefix + "attn_output.weight", hidden, heads * head_dim)
        if "num_experts" in config:
            add_norm(prefix + "attn_q_norm.weight", head_dim)
            add_norm(prefix + "attn_k_norm.weight", head_dim)
            add_experts(prefix)
            continue
        add_matrix(prefix + "ffn_gate.weight", intermediate, hidden)
        add_matrix(prefix + "ffn_up.weight", intermediate, hidden)
        add_matrix(prefix + "ffn_down.weight", hidden, intermediate)
    finish(writer)


if __name__ == "__main__":
    main()
