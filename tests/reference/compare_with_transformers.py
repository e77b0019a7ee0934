#!/usr/bin/env python3
"""Compares the reference decoder with transformers: run by hand, where torch and transformers are.

    tests/reference/compare_with_transformers.py build/release/tests/support/cria-make-checkpoint

For every small shape and every storage type, the program makes a checkpoint and the logits of the
reference decoder for it; transformers reads the checkpoint and computes them too, in float64. What it
prints is the largest difference beside the largest logit. Exits 1 where one is above 1e-5: transformers
makes rotary angles in float32.
"""

import pathlib
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


def compare(program, shape, dtype):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "-o", folder, "--shape", shape, "--dtype", dtype, "--logits", str(TOKENS)],
                       check=True)
        expected = [float(line) for line in (pathlib.Path(folder) / "logits.txt").read_text().split()]
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float64, attn_implementation="eager").eval()
    vocabulary = model.config.vocab_size
    ids = [(7 * i * i + 13 * i + 5) % vocabulary for i in range(TOKENS)]
    with torch.no_grad():
        logits = model(torch.tensor([ids]), use_cache=False).logits[0].double()
    expected = torch.tensor(expected, dtype=torch.float64).reshape(TOKENS, vocabulary)
    difference = (logits - expected).abs().max().item()
    print(f"{type(model).__name__:22} {shape:12} {dtype:5} {difference:9.2e} of {expected.abs().max().item():.2f}")
    return difference


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}")
    largest = max(compare(sys.argv[1], shape, dtype) for shape in SHAPES for dtype in ["f32", "bf16", "f16"])
    print(f"largest difference {largest:.2e}, bound {BOUND:.0e}")
    return largest > BOUND


if __name__ == "__main__":
    sys.exit(main())
