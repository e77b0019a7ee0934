#!/usr/bin/env python3
"""Compares the reference decoder with transformers: run by hand, where torch and transformers are.

    tests/reference/compare_with_transformers.py build/release/tests/support/cria-make-checkpoint

For every small shape and every storage type, and for random configurations of the families with short
convolutions and linear attention, the program makes a checkpoint and the logits of the reference decoder for it;
transformers reads the checkpoint and computes them too, in float64. What it prints is the largest
difference beside the largest logit. Exits 1 where one is above 1e-5: transformers makes rotary angles in
float32; or above 5e-5 where there is linear attention, of which it computes more in float32. Of the families it also compares the likeliest tokens, with transformers going on from a cache.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import torch
    import transformers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(0)

SHAPES = ["Mha", "Gqa", "Mqa", "Tied", "OddHeadDim", "LinearRope", "Llama3Rope", "DynamicRope", "YarnRope",
          "Biases", "Mistral", "Ministral", "Qwen2", "Qwen2Window", "Qwen3", "Qwen3Biases", "Qwen3Window",
          "Padded"]
TOKENS = 48
BOUND = 1e-5
LINEAR_BOUND = 5e-5


def sizes(architecture, model_type, layers):
    return {"architectures": [architecture], "model_type": model_type, "num_hidden_layers": layers,
            "hidden_size": 64, "intermediate_size": 160, "vocab_size": 300, "max_position_embeddings": 128,
            "num_attention_heads": 4, "num_key_value_heads": random.choice([1, 2, 4]),
            "conv_L_cache": random.choice([3, 4, 7]), "conv_bias": random.choice([False, True]),
            "pad_token_id": 0,
            "norm_eps": random.choice([1e-5, 1e-6]), "tie_word_embeddings": random.choice([False, True])}


def random_layers(layers, types):
    """At least one layer of each type."""
    chosen = list(types) + random.choices(types, k=layers - len(types))
    random.shuffle(chosen)
    return chosen


def random_lfm2():
    config = sizes("Lfm2ForCausalLM", "lfm2", 5)
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": random.choice([1e4, 1e6])}
    if random.random() < 0.5:
        config["layer_types"] = random_layers(5, ["conv", "full_attention"])
    else:
        config["full_attn_idxs"] = random.sample(range(5), 2)
    config["block_auto_adjust_ff_dim"] = random.choice([False, True])
    config["block_multiple_of"] = random.choice([1, 16, 64])
    config["block_ffn_dim_multiplier"] = random.choice([1.0, 1.3, 0.7])
    if random.random() < 0.5:
        config["block_ff_dim"] = random.choice([100, 250])
    return config


def random_lfm2_moe():
    config = sizes("Lfm2MoeForCausalLM", "lfm2_moe", 5)
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e6}
    config.update(layer_types=random_layers(5, ["conv", "full_attention"]), moe_intermediate_size=48,
                  num_experts=8, num_experts_per_tok=random.choice([1, 3, 8]),
                  num_dense_layers=random.choice([0, 1, 2]), use_expert_bias=random.choice([False, True]),
                  norm_topk_prob=random.choice([False, True]), routed_scaling_factor=random.choice([1.0, 2.5]))
    return config


def random_lfm3():
    config = sizes("Lfm3ForCausalLM", "lfm3", 6)
    config.update(head_dim=random.choice([16, 32]), sliding_window=random.choice([5, 12]),
                  use_sandwich_norm=random.choice([False, True]), attention_bias=random.choice([False, True]),
                  use_attention_gate=random.choice([False, True]))
    if random.random() < 0.5:
        config["layer_types"] = random_layers(6, ["conv", "full_attention", "sliding_attention"])
        config["rope_parameters"] = {
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "factor": random.choice([1.0, 2.0]),
                               "partial_rotary_factor": random.choice([0.25, 0.5, 1.0])}}
    return config


def random_linear(architecture, model_type):
    key_heads = random.choice([1, 2, 3])
    config = {"architectures": [architecture], "model_type": model_type, "num_hidden_layers": 4,
              "hidden_size": 64, "intermediate_size": 160, "vocab_size": 300, "max_position_embeddings": 128,
              "num_attention_heads": 4, "num_key_value_heads": random.choice([1, 2, 4]),
              "head_dim": random.choice([16, 32]), "pad_token_id": 0, "rms_norm_eps": random.choice([1e-5, 1e-6]),
              "tie_word_embeddings": random.choice([False, True]),
              "linear_conv_kernel_dim": random.choice([2, 3, 4]), "linear_key_head_dim": random.choice([16, 20, 64]),
              "linear_value_head_dim": random.choice([16, 24, 64]), "linear_num_key_heads": key_heads,
              "linear_num_value_heads": key_heads * random.choice([1, 2, 4]),
              "rope_parameters": {"rope_type": "default", "rope_theta": random.choice([1e4, 1e7]),
                                  "partial_rotary_factor": random.choice([0.25, 0.5, 1.0])}}
    if random.random() < 0.5:
        config["layer_types"] = random_layers(4, ["linear_attention", "full_attention"])
    else:
        config["full_attention_interval"] = random.choice([2, 4])
    if architecture != "Qwen3_5ForCausalLM":
        config.update(num_experts=8, num_experts_per_tok=random.choice([1, 3, 8]), moe_intermediate_size=48,
                      shared_expert_intermediate_size=64)
    if architecture == "Qwen3NextForCausalLM":
        config.update(norm_topk_prob=random.choice([False, True]), mlp_only_layers=random.choice([[], [1]]))
    return config


def random_qwen35():
    return random_linear("Qwen3_5ForCausalLM", "qwen3_5_text")


def random_qwen35_moe():
    return random_linear("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text")


def random_qwen3_next():
    return random_linear("Qwen3NextForCausalLM", "qwen3_next")


def compare(program, shape, dtype, config=None):
    with tempfile.TemporaryDirectory() as folder:
        kind = ["--shape", shape]
        if config is not None:
            (pathlib.Path(folder) / "given.json").write_text(json.dumps(config))
            kind = ["--config", folder + "/given.json"]
        subprocess.run([program, "-o", folder, *kind, "--dtype", dtype, "--logits", str(TOKENS)], check=True)
        expected = [float(line) for line in (pathlib.Path(folder) / "logits.txt").read_text().split()]
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float64, attn_implementation="eager", experts_implementation="eager").eval()
    vocabulary = model.config.vocab_size
    ids = [(7 * i * i + 13 * i + 5) % vocabulary for i in range(TOKENS)]
    with torch.no_grad():
        logits = model(torch.tensor([ids]), use_cache=False).logits[0].double()
    expected = torch.tensor(expected, dtype=torch.float64).reshape(TOKENS, vocabulary)
    if config is not None:
        likeliest = []
        cache = None
        with torch.no_grad():
            for token in ids:
                output = model(torch.tensor([[token]]), cache=cache, use_cache=True)
                cache = output.cache
                likeliest.append(output.logits[0, -1].argmax().item())
        if likeliest != expected.argmax(dim=1).tolist():
            print(f"{json.dumps(config)}: other tokens are the likeliest")
            return float("inf")
    difference = (logits - expected).abs().max().item()
    print(f"{type(model).__name__:22} {shape:12} {dtype:5} {difference:9.2e} of {expected.abs().max().item():.2f}")
    return difference


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}")
    random.seed(1)
    largest = 0.0
    largest_linear = 0.0
    for make in [random_lfm2, random_lfm2_moe, random_lfm3, random_qwen35, random_qwen35_moe, random_qwen3_next]:
        for _ in range(12):
            config = make()
            is_linear = "linear_num_key_heads" in config
            taps = config["linear_conv_kernel_dim" if is_linear else "conv_L_cache"]
            difference = compare(sys.argv[1], f"{taps} taps", "f32", config)
            if difference > (LINEAR_BOUND if is_linear else BOUND):
                print(json.dumps(config))
            if is_linear:
                largest_linear = max(largest_linear, difference)
            else:
                largest = max(largest, difference)
    largest = max(largest, *(compare(sys.argv[1], shape, dtype)
                             for shape in SHAPES for dtype in ["f32", "bf16", "f16"]))
    print(f"largest difference {largest:.2e}, bound {BOUND:.0e}; with linear attention {largest_linear:.2e}, "
          f"bound {LINEAR_BOUND:.0e}")
    return largest > BOUND or largest_linear > LINEAR_BOUND


if __name__ == "__main__":
    sys.exit(main())
