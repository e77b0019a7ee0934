#!/usr/bin/env python3
"""Writes demo_expected.json, with which reference_decoder_test compares the reference decoder: what the demo
checkpoint computes, evaluated in float64 with NumPy, whole sequences at once and without a cache. It shares no code
with the reference decoder or with demo/model.py. Run it after the checkpoint was trained again."""

import json
import pathlib
import struct

import numpy as np

FOLDER = pathlib.Path(__file__).parent
CHECKPOINT = FOLDER / "../../demo/cria-demo"
CONFIG = json.loads((CHECKPOINT / "config.json").read_text(encoding="utf-8"))


def read_tensors():
    data = (CHECKPOINT / "model.safetensors").read_bytes()
    begin = 8 + struct.unpack_from("<Q", data)[0]
    tensors = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        bits = np.frombuffer(data[begin + first:begin + last], dtype="<u2").astype(np.uint32) << 16
        tensors[name] = bits.view(np.float32).astype(np.float64).reshape(entry["shape"])
    return tensors


TENSORS = read_tensors()


def norm(x, name):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + CONFIG["rms_norm_eps"]) * TENSORS[name]


def rotated(x):
    """x is [tokens, heads, head_dim]; channel j turns with channel j + head_dim / 2, here as complex numbers."""
    half = x.shape[-1] // 2
    frequencies = CONFIG["rope_theta"] ** (-np.arange(half) / half)
    turns = np.exp(1j * np.arange(len(x))[:, None] * frequencies)[:, None, :]
    turned = (x[..., :half] + 1j * x[..., half:]) * turns
    return np.concatenate([turned.real, turned.imag], axis=-1)


def logits(ids):
    """[tokens, vocabulary]"""
    heads, kv_heads, size = CONFIG["num_attention_heads"], CONFIG["num_key_value_heads"], CONFIG["head_dim"]
    embedding = TENSORS["model.embed_tokens.weight"]
    x = embedding[ids]
    future = np.triu(np.full((len(ids), len(ids)), -np.inf), 1)
    for layer in range(CONFIG["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        project = lambda name, inputs, p=prefix: inputs @ TENSORS[p + name + ".weight"].T
        hidden = norm(x, prefix + "input_layernorm.weight")
        queries = rotated(project("self_attn.q_proj", hidden).reshape(-1, heads, size))
        keys = rotated(project("self_attn.k_proj", hidden).reshape(-1, kv_heads, size))
        values = project("self_attn.v_proj", hidden).reshape(-1, kv_heads, size)
        keys, values = (np.repeat(each, heads // kv_heads, axis=1) for each in (keys, values))
        scores = np.einsum("qhd,khd->hqk", queries, keys) / np.sqrt(size) + future
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        attended = np.einsum("hqk,khd->qhd", weights, values).reshape(len(ids), -1)
        x = x + project("self_attn.o_proj", attended)
        hidden = norm(x, prefix + "post_attention_layernorm.weight")
        gate = project("mlp.gate_proj", hidden)
        x = x + project("mlp.down_proj", gate / (1 + np.exp(-gate)) * project("mlp.up_proj", hidden))
    return norm(x, "model.norm.weight") @ embedding.T


def greedy(prompt, count):
    ids = list(prompt)
    for _ in range(count):
        ids.append(int(np.argmax(logits(ids)[-1])))
    return ids[len(prompt):]


def mean_negative_log_likelihood(ids, context):
    total = 0.0
    for first in range(0, len(ids), context - 1):
        window = ids[first:first + context - 1]
        rows = logits([CONFIG["bos_token_id"]] + window[:-1])
        largest = rows.max(axis=-1)
        sums = largest + np.log(np.exp(rows - largest[:, None]).sum(axis=-1))
        total += float((sums - rows[np.arange(len(window)), window]).sum())
    return total / len(ids)


def scattered(count, seed):
    """Ids of every part of the vocabulary."""
    return [(7 * i * i + 13 * i + seed) % CONFIG["vocab_size"] for i in range(count)]


cases = []
for prompt in ([1, 3], [1] + scattered(20, 5), scattered(3, 700)):
    rows = logits(prompt)
    cases.append({"prompt_ids": prompt, "greedy_ids": greedy(prompt, 24),
                  "every_32nd_logit": [[float(f"{value:.12g}") for value in row[::32]] for row in rows[-2:]]})
text = cases[0]["greedy_ids"] + scattered(40, 11)
(FOLDER / "demo_expected.json").write_text(json.dumps({
    "cases": cases,
    "text_ids": text,
    "context": 32,
    "mean_negative_log_likelihood": mean_negative_log_likelihood(text, 32)}, indent=1) + "\n", encoding="utf-8")
