#!/usr/bin/env python3
"""Compares the reference decoder and the runtime with transformers: run by hand, where torch and transformers are.

    ./dev build release && ./dev shell ninja -C build/release cria-decoder-logits
    ./dev shell PYTHON tests/reference/compare_with_transformers.py build/release

For every small shape and every storage type, and for random configurations of the families with short
convolutions, with linear attention or Mamba, of Gemma 4, and of those from Ministral 3 to GLM-4, a program makes a checkpoint and the logits of the reference decoder for it;
transformers reads the checkpoint and computes them too, in float64. What is printed is the largest
difference beside the largest logit, which must be at most 1e-5: transformers makes rotary angles in
float32; and at most 5e-5 where there is linear attention or Mamba, of which it computes more in float32. Checkpoints of the families are also converted without quantizing, and what the runtime computes, in
chunks of several sizes, must be within 1e-3, its negative log-likelihood within 1e-4, and its greedy texts equal.
"""

import argparse
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
LONG_TOKENS = 100
GREEDY_TOKENS = 32
CHUNKS = [[1], [2], [3, 1, 5], [7], [16, 1], [33], [100]]
DECODER_BOUND = 1e-3
NLL_BOUND = 1e-4


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


def random_granite_mamba():
    """Granite 4.0 with layers of Mamba, and with experts or without."""
    config = random_granite4()
    heads, expand = random.choice([(4, 2), (8, 2), (6, 3)])
    config.update(mamba_n_heads=heads, mamba_expand=expand, mamba_d_head=random.choice(["auto", 64 * expand // heads]),
                  mamba_n_groups=random.choice([1, 2]), mamba_d_state=random.choice([16, 20, 64]),
                  mamba_d_conv=random.choice([2, 3, 4]), mamba_conv_bias=random.choice([False, True]),
                  mamba_proj_bias=random.choice([False, True]), mamba_chunk_size=random.choice([8, 256]))
    del config["layer_types"]
    config[random.choice(["layer_types", "layers_block_type"])] = random_layers(3, ["mamba", "attention"])
    if random.random() < 0.5:
        config.update(num_local_experts=8, num_experts_per_tok=random.choice([1, 3, 8]), intermediate_size=48)
    return config


def random_gpt_oss():
    config = recent_sizes("GptOssForCausalLM", "gpt_oss", 4)
    config.update(intermediate_size=random.choice([32, 48]), sliding_window=random.choice([5, 12]),
                  num_local_experts=8, num_experts_per_tok=random.choice([1, 3, 8]),
                  attention_bias=random.choice([False, True]), swiglu_limit=random.choice([0.7, 2.0, 7.0]))
    if random.random() < 0.5:
        config.update(intermediate_size=random.choice([32, 96]), quantization_config={"quant_method": "mxfp4"})
    if random.random() < 0.5:
        config["rope_scaling"] = {"rope_type": "yarn", "factor": random.choice([4.0, 32.0]), "beta_fast": 32.0,
                                  "beta_slow": 1.0, "truncate": random.choice([False, True]),
                                  "original_max_position_embeddings": 32}
        config["rope_theta"] = 150000.0
    else:
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e4}
        config["layer_types"] = random_layers(4, ["full_attention", "sliding_attention"])
        config["swiglu_alpha"] = random.choice([1.0, 2.0])
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


def random_gemma4():
    layers = random.choice([4, 6, 7])
    config = recent_sizes("Gemma4ForCausalLM", "gemma4_text", layers)
    config.update(global_head_dim=random.choice([16, 32, 64]), sliding_window=random.choice([5, 12]),
                  layer_types=random_layers(layers - 1, ["sliding_attention", "full_attention"]) + ["full_attention"],
                  final_logit_softcapping=random.choice([None, 4.0, 30.0]), attention_bias=random.choice([False, True]),
                  attention_k_eq_v=False, num_kv_shared_layers=0, hidden_size_per_layer_input=0)
    if random.random() < 0.5:
        config.update(hidden_size_per_layer_input=random.choice([8, 32]), vocab_size_per_layer_input=300,
                      use_double_wide_mlp=random.choice([False, True]))
        # Layers that read keys and values need an earlier layer of their type.
        own = max(config["layer_types"].index(type) for type in set(config["layer_types"])) + 1
        config["num_kv_shared_layers"] = random.randrange(layers - own + 1)
        return config
    config.update(attention_k_eq_v=random.choice([False, True]), num_global_key_value_heads=random.choice([1, 2]))
    if random.random() < 0.5:
        config.update(enable_moe_block=True, num_experts=8, top_k_experts=random.choice([1, 3]),
                      moe_intermediate_size=48)
    return config


def transformers_model(folder):
    options = {}
    if "quantization_config" in json.loads((pathlib.Path(folder) / "config.json").read_text()):
        options["quantization_config"] = transformers.Mxfp4Config(dequantize=True)
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager", experts_implementation="eager", **options).eval()


def transformers_logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].double()


def likeliest_with_cache(model, ids):
    """The likeliest token after each, computed one token after another."""
    likeliest = []
    cache = None
    with torch.no_grad():
        for token in ids:
            output = model(torch.tensor([[token]]), past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            likeliest.append(output.logits[0, -1].argmax().item())
    return likeliest


def greedy_continuation(model, ids):
    ids = list(ids)
    for _ in range(GREEDY_TOKENS):
        ids.append(transformers_logits(model, ids)[-1].argmax().item())
    return ids


def mean_nll(logits, ids):
    return torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:])).item()


def compare(build, shape, dtype, config=None):
    """The largest difference of the reference decoder's logits."""
    with tempfile.TemporaryDirectory() as folder:
        kind = ["--shape", shape]
        if config is not None:
            (pathlib.Path(folder) / "given.json").write_text(json.dumps(config))
            kind = ["--config", folder + "/given.json"]
        subprocess.run([build / "tests/support/cria-make-checkpoint", "-o", folder, *kind, "--dtype", dtype,
                        "--logits", str(TOKENS)], check=True)
        expected = [float(line) for line in (pathlib.Path(folder) / "logits.txt").read_text().split()]
        model = transformers_model(folder)
        if config is not None:
            compare_decoder(build, folder, model, config)
    vocabulary = model.config.vocab_size
    ids = [(7 * i * i + 13 * i + 5) % vocabulary for i in range(TOKENS)]
    expected = torch.tensor(expected, dtype=torch.float64).reshape(TOKENS, vocabulary)
    if config is not None and likeliest_with_cache(model, ids) != expected.argmax(dim=1).tolist():
        fail(f"{json.dumps(config)}: other tokens are the likeliest")
    difference = (transformers_logits(model, ids) - expected).abs().max().item()
    print(f"{type(model).__name__:22} {shape:12} {dtype:5} {difference:9.2e} of {expected.abs().max().item():.2f}")
    is_linear = config is not None and ("linear_num_key_heads" in config or "mamba_d_state" in config)
    bound = LINEAR_BOUND if is_linear else BOUND
    if difference > bound:
        fail(f"{json.dumps(config)}: {difference:.2e} is above {bound:.0e}")
    return difference


def decoder_logits(build, model_file, ids, chunks):
    output = model_file + ".logits"
    subprocess.run([build / "tests/reference/cria-decoder-logits", "-m", model_file, "-o", output,
                    "--tokens", ",".join(map(str, ids)), "--chunks", ",".join(map(str, chunks))], check=True)
    data = torch.frombuffer(bytearray(pathlib.Path(output).read_bytes()), dtype=torch.float32)
    return data.reshape(len(ids), -1).double()


def compare_decoder(build, folder, model, config):
    """What the runtime computes for the converted checkpoint, in chunks of several sizes."""
    model_file = folder + "/model.cria"
    subprocess.run([build / "cli/cria-convert", folder, "-o", model_file, "--weights", "f32"], check=True,
                   capture_output=True)
    ids = [random.randrange(model.config.vocab_size) for _ in range(LONG_TOKENS)]
    expected = transformers_logits(model, ids)
    results = [decoder_logits(build, model_file, ids, chunks) for chunks in CHUNKS]
    difference = max((logits - expected).abs().max().item() for logits in results)
    nll = max(abs(mean_nll(logits, ids) - mean_nll(expected, ids)) for logits in results)
    same_bits = all(torch.equal(logits, results[0]) for logits in results)
    print(f"  decoder: logits {difference:9.2e} of {expected.abs().max().item():.2f}, nll {nll:9.2e}, "
          f"{'equal' if same_bits else 'other'} bits in other chunks")
    if difference > DECODER_BOUND or nll > NLL_BOUND:
        fail(f"{json.dumps(config)}: the decoder's logits or their negative log-likelihood differ")
    for prompt_tokens in [1, 7, 40]:
        text = greedy_continuation(model, ids[:prompt_tokens])
        logits = decoder_logits(build, model_file, text, [prompt_tokens] + [1] * GREEDY_TOKENS)
        if logits[prompt_tokens - 1:-1].argmax(dim=1).tolist() != text[prompt_tokens:]:
            fail(f"{json.dumps(config)}: another greedy text after {prompt_tokens} tokens")


failures = []


def fail(sentence):
    print(sentence)
    failures.append(sentence)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="the folder of a build")
    parser.add_argument("--count", type=int, default=12, help="random configurations of each family [12]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only the families whose names have this, such as gemma4")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}")
    random.seed(options.seed)
    largest = 0.0
    for make in [random_lfm2, random_lfm2_moe, random_lfm3, random_qwen35, random_qwen35_moe, random_qwen3_next,
                 random_ministral3, random_granite4, random_granite_mamba, random_gpt_oss, random_olmo3, random_exaone4, random_gemma4, random_gemma4,
                 random_others, random_others, random_others]:
        for _ in range(options.count if options.only in make.__name__ else 0):
            config = make()
            largest = max(largest, compare(options.build, f"{config['num_key_value_heads']} heads", "f32", config))
    largest = max([largest, *(compare(options.build, shape, dtype)
                             for shape in SHAPES if not options.only for dtype in ["f32", "bf16", "f16"])])
    print(f"largest difference of the reference decoder {largest:.2e}; "
          f"{len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
