#!/usr/bin/env python3
"""Compares embeddings with sentence-transformers: run by hand, where torch and sentence-transformers are.

    ./dev build release cria cria-convert
    ./dev shell PYTHON tests/reference/compare_with_sentence_transformers.py build/release

Random models with the shapes of Qwen3-Embedding (the last token, which the tokenizer appends) and of Llama and Qwen2
(the mean) are saved by sentence-transformers, converted without quantizing, and embed 50 texts of several lengths and
languages, one after another and several at once. The cosine of each pair of embeddings must be at least 0.9999, where
different texts are far apart.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import sentence_transformers
    import tokenizers
    import torch
    import transformers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(0)

SENTENCES = [
    "A board with little memory runs a small language model.", "Where is the nearest harbour?", "yes", "42",
    "def mean(values): return sum(values) / len(values)", "  two  spaces,\ttabs, and a line end\nin the middle ",
    "Die Größe des Speichers wird vor dem Laden geplant.", "Über sieben Brücken musst du gehen.",
    "Le modèle répond en français, à peu près.", "¿Dónde está la biblioteca más cercana?", "Das ist alles!?",
    "Быстрая лиса перепрыгивает через ленивую собаку.", "Η γρήγορη αλεπού πηδά πάνω από το σκυλί.",
    "机器人在一块小板子上运行。", "日本語の文章も埋め込みます。", "한국어 문장도 포함됩니다.", "مرحبا بالعالم، كيف حالك؟",
    "यह एक परीक्षण वाक्य है।", "ประโยคทดสอบภาษาไทย", "שלום עולם", "emoji 🦙🚀 and combining é", "don't can't I'LL we've",
    "https://example.org/a?b=c&d=%20", "1234567890 12,345.67 0x1F 3.14e-10", "MiXeD CaSe and under_scores, kebab-case"]
SEPARATOR = "<#sep#>"
BOUND = 0.9999
# Texts that are embedded alike would say nothing.
FARTHEST = 0.9


def texts():
    """Each sentence alone, and longer texts of up to a few hundred tokens."""
    longer = [" ".join(SENTENCES[(i * 7 + k * 3) % len(SENTENCES)] for k in range(1 + i % 12))
              for i in range(len(SENTENCES))]
    return SENTENCES + longer


def make_tokenizer(appends_eos):
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+"), "isolated")
    model.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [split, tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    model.normalizer = tokenizers.normalizers.NFC()
    model.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=700, special_tokens=["<|endoftext|>"],
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model.train_from_iterator(texts(), trainer)
    if appends_eos:
        model.post_processor = tokenizers.processors.TemplateProcessing(
            single="$A <|endoftext|>", special_tokens=[("<|endoftext|>", model.token_to_id("<|endoftext|>"))])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=model, eos_token="<|endoftext|>",
                                                pad_token="<|endoftext|>", model_max_length=1024)


def configurations(vocab_size):
    sizes = {"vocab_size": vocab_size, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4,
             "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": 1024,
             # With weights that are so large, a hidden state is made by all layers and tokens.
             "initializer_range": 0.15, "tie_word_embeddings": True, "pad_token_id": 0, "eos_token_id": 0,
             "bos_token_id": None}
    yield "Qwen3, last token", transformers.Qwen3Config(**sizes), "lasttoken", True
    yield "Qwen3, mean", transformers.Qwen3Config(**sizes), "mean", True
    yield "Llama, mean", transformers.LlamaConfig(**sizes), "mean", False
    del sizes["head_dim"]
    yield "Qwen2, mean", transformers.Qwen2Config(**sizes), "mean", False
    yield "Qwen2, last token", transformers.Qwen2Config(**sizes), "lasttoken", False


def save(config, tokenizer, pooling, has_head, folder):
    torch.manual_seed(5)
    make = transformers.AutoModelForCausalLM if has_head else transformers.AutoModel
    plain = folder / "plain"
    make.from_config(config).save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    tokenizer.padding_side = "left"
    modules = sentence_transformers.sentence_transformer.modules
    transformer = modules.Transformer(str(plain))
    transformer.tokenizer.padding_side = "left" if pooling == "lasttoken" else "right"
    model = sentence_transformers.SentenceTransformer(
        modules=[transformer, modules.Pooling(config.hidden_size, pooling_mode=pooling), modules.Normalize()],
        device="cpu")
    model.save(str(folder / "checkpoint"))
    return model


def embed(build, model_file, options):
    result = subprocess.run(
        [build / "cli/cria", "embed", "-m", model_file, "-q", "--embd-output-format", "array", "--embd-separator",
         SEPARATOR, "--kv", "f32", "-c", "1024", *options], input=SEPARATOR.join(texts()), text=True, check=True,
        stdout=subprocess.PIPE)
    return torch.tensor(json.loads(result.stdout), dtype=torch.float64)


def compare(build, name, config, pooling, appends_eos, has_head):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        tokenizer = make_tokenizer(appends_eos)
        model = save(config, tokenizer, pooling, has_head, folder)
        lengths = [len(tokenizer(text)["input_ids"]) for text in texts()]
        expected = model.encode(texts(), batch_size=8, convert_to_tensor=True).double()
        model_file = folder / "model.cria"
        subprocess.run([build / "cli/cria-convert", folder / "checkpoint", "-o", model_file, "--weights", "f32"],
                       check=True, capture_output=True)
        alone = embed(build, model_file, ["-np", "1"])
        together = embed(build, model_file, ["-np", "4"])
    cosines = [(expected * found).sum(dim=1).min().item() for found in (alone, together)]
    farthest = (expected @ expected.T).min().item()
    print(f"{name + (', head' if has_head else ''):26} {len(lengths)} texts of {min(lengths)} to {max(lengths)} tokens: "
          f"least cosine {cosines[0]:.7f} alone, {cosines[1]:.7f} together; of different texts {farthest:.3f}")
    return min(cosines) >= BOUND and farthest < FARTHEST


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="the folder of a build")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    print(f"torch {torch.__version__}, sentence-transformers {sentence_transformers.__version__}")
    vocab_size = len(make_tokenizer(False))
    failures = 0
    for name, config, pooling, appends_eos in configurations(vocab_size):
        for has_head in (False, True):
            failures += not compare(options.build, name, config, pooling, appends_eos, has_head)
    print(f"{failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
