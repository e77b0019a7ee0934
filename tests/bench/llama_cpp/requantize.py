#!/usr/bin/env python3
"""Writes a checkpoint with the weights that llama.cpp would use, to compare what formats lose.

    requantize.py CHECKPOINT_FOLDER OUTPUT_FOLDER --llama-quantize FOLDER/build/bin/llama-quantize [--type Q4_K_M]

Quantizes a Hugging Face checkpoint of a Llama (one model.safetensors) by llama-quantize, and writes the
result as f32 beside the same tokenizer: `cria-convert --weights f32` and `cria eval --base` then measure what
the weights lose. (llama.cpp also rounds activations, which is not part of that.) Needs the Python packages gguf
and numpy.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile

import gguf
import gguf.quants
import numpy as np
from llama_gguf import finish, open_writer

NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
LAYER_NAMES = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
               "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
               "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
               "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def read_tensors(path):
    """The tensors of a safetensors file, as f32 by name."""
    data = path.read_bytes()
    header_bytes = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + header_bytes])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            values = np.frombuffer(data[begin:end], np.uint16).astype(np.uint32) << 16
            values = values.view(np.float32)
        else:
            values = np.frombuffer(data[begin:end], {"F32": np.float32, "F16": np.float16}[entry["dtype"]])
        tensors[name] = values.astype(np.float32).reshape(entry["shape"])
    return tensors


def write_tensors(path, tensors):
    header, offset = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": values.shape,
                        "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with open(path, "wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for values in tensors.values():
            file.write(values.tobytes())


def gguf_name(name):
    base = name.removesuffix(".weight")
    if base in NAMES:
        return NAMES[base] + ".weight"
    _, _, layer, rest = base.split(".", 3)
    return f"blk.{layer}.{LAYER_NAMES[rest]}.weight"


def write_gguf(path, config, tensors):
    # Rows of queries and keys keep Hugging Face's order: this changes nothing of how they are quantized.
    writer = open_writer(path, config)
    writer.add_tokenizer_model("none")
    for name, values in tensors.items():
        writer.add_tensor(gguf_name(name), values)
    finish(writer)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--llama-quantize", required=True)
    parser.add_argument("--type", default="Q4_K_M")
    arguments = parser.parse_args()
    config = json.loads((arguments.checkpoint / "config.json").read_text())
    tensors = read_tensors(arguments.checkpoint / "model.safetensors")
    with tempfile.TemporaryDirectory() as folder:
        source, quantized = f"{folder}/f32.gguf", f"{folder}/quantized.gguf"
        write_gguf(source, config, tensors)
        subprocess.run([arguments.llama_quantize, source, quantized, arguments.type], check=True,
                       stdout=subprocess.DEVNULL)
        stored = {tensor.name: tensor for tensor in gguf.GGUFReader(quantized).tensors}
        num_weights = sum(values.size for values in tensors.values())
        num_bytes = sum(int(tensor.n_bytes) for tensor in stored.values())
        print(f"{8 * num_bytes / num_weights:.2f} bits per weight")
        for name in tensors:
            tensor = stored[gguf_name(name)]
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            tensors[name] = values.astype(np.float32).reshape(tensors[name].shape)
    shutil.copytree(arguments.checkpoint, arguments.output, dirs_exist_ok=True)
    write_tensors(arguments.output / "model.safetensors", tensors)


if __name__ == "__main__":
    main()
