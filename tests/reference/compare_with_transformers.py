#!/usr/bin/env python3
"""Compares the reference decoder with transformers: run by hand, where torch and transformers are.

    tests/reference/compare_with_transformers.py build/release/tests/support/cria-make-checkpoint

For every small shape and every storage type, and for random configurations of the families with short
convolutions and of those from Ministral 3 to GLM-4, the program makes a checkpoint and the logits of the reference decoder for it;
transformers reads the checkpoint and computes them too, in float64. What it prints is the largest
difference beside the largest logit. Exits 1 where one is above 1e-5: transformers makes rotary angles in
float32. Of the families it also compares the likeliest tokens, with transformers going on from a cache.
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


def recent_sizes(architecture, model_type, layers):
    config = sizes(architecture, model_type, layers)
    for name in ["conv_L_cache", "conv_bias", "norm_eps"]:
        del config[name]
    config.update(head_dim=random.choice([16, 32]), rms_norm_eps=random.choice([1e-5, 1e-6]))
    return config


def random_ministral3():
    config = recent_sizes("Ministral3ForCausalLM", "ministral3", 2)
    config["sliding_window"] = random.choice([None, 12])
    config["rope_parameters"] = {"rope_type": "yarn", "rope_theta": 1e6, "factor": random.choice([4.0, 8.0]),
                                 "original_max_position_embeddings": random.choice([10, 16]),
                                 "llama_4_scaling_beta": random.choice([0.1, 0.5])}
    config["rope_parameters"].update(random.choice([{}, {"mscale": 0.7, "mscale_all_dim": 1.3}]))
    return config


def random_granite4():
    config = recent_sizes("GraniteMoeHybridForCausalLM", "granitemoehybrid", 3)
    del config["head_dim"]
    config.update(layer_types=["attention"] * 3, num_local_experts=0, shared_intermediate_size=96,
                  position_embedding_type=random.choice(["rope", None]), attention_bias=random.choice([False, True]),
                  attention_multiplier=random.choice([0.125, 0.4]), embedding_multiplier=6.0, residual_multiplier=0.22,
                  logits_scaling=2.0, rope_theta=1e4, mamba_n_heads=4)
    return config


def random_olmo3():
    config = recent_sizes("Olmo3ForCausalLM", "olmo3", 4)
    config.update(sliding_window=random.choice([5, 12]), attention_bias=random.choice([False, True]))
    if random.random() < 0.5:
        config["layer_types"] = random_layers(4, ["full_attention", "sliding_attention"])
        config["rope_parameters"] = {"full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e6},
                                     "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
    else:
        config["rope_theta"] = 5e5
    return config


def random_exaone4():
    config = recent_sizes("Exaone4ForCausalLM", "exaone4", 4)
    config.update(rope_theta=1e6, sliding_window=random.choice([5, 12]), sliding_window_pattern=random.choice([2, 4]))
    if random.random() < 0.4:
        config.update(sliding_window=None, sliding_window_pattern=None, layer_types=["full_attention"] * 4)
    return config


def random_others():
    biases = {"attention_bias": random.choice([False, True]), "mlp_bias": random.choice([False, True])}
    config = random.choice([
        {**recent_sizes("Ernie4_5ForCausalLM", "ernie4_5", 2), "use_bias": random.choice([False, True])},
        {**recent_sizes("SeedOssForCausalLM", "seed_oss", 2), **biases,
         "attention_out_bias": biases["attention_bias"] and random.choice([False, True])},
        {**recent_sizes("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", 2), "attention_bias": biases["attention_bias"],
         "rope_scaling": {"type": "dynamic", "alpha": random.choice([10.0, 1000.0]), "factor": 1.0}},
        {**recent_sizes("ArceeForCausalLM", "arcee", 2), **biases, "hidden_act": "relu2"},
        {**recent_sizes("ApertusForCausalLM", "apertus", 2), "attention_bias": biases["attention_bias"],
         "hidden_act": "xielu", "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
        {**recent_sizes(*random.choice([("GlmForCausalLM", "glm"), ("Glm4ForCausalLM", "glm4")]), 2),
         "attention_bias": biases["attention_bias"], "partial_rotary_factor": random.choice([0.25, 0.5, 1.0])}])
    config.setdefault("rope_theta", 1e4)
    return config


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
    for make in [random_lfm2, random_lfm2_moe, random_lfm3, random_ministral3, random_granite4, random_olmo3,
                 random_exaone4, random_others, random_others, random_others]:
        for _ in range(12):
            config = make()
            difference = compare(sys.argv[1], f"{config['num_key_value_heads']} heads", "f32", config)
            if difference > BOUND:
                print(json.dumps(config))
            largest = max(largest, difference)
    largest = max(largest, *(compare(sys.argv[1], shape, dtype)
                             for shape in SHAPES for dtype in ["f32", "bf16", "f16"]))
    print(f"largest difference {largest:.2e}, bound {BOUND:.0e}")
    return largest > BOUND


if __name__ == "__main__":
    sys.exit(main())
