"""Trains the demo checkpoint from scratch: writes the corpus, trains the tokenizer, then the model.

Usage: python3 train.py [--out cria-demo] [--steps 4000] [--start-from DIRECTORY] [--peak-rate 2e-3] [--seed 20]
"""

import argparse
import copy
import math
import os
import random
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import sentencepiece
import torch
from torch.nn import functional

import checkpoint
import samples
from corpus.dialogue import conversations
from model import Llama, ModelConfig, round_to_int4, round_to_int8

SEED = 20
HELD_OUT_SEED = 21
HELD_OUT_CONVERSATIONS = 400
TOKENIZER_CONVERSATIONS = 20000
REPLICAS = 2               # threads that train at the same time, each on its own batch
BATCH_TOKENS = 1024
BATCHES_IN_POOL = 60
WARMUP_STEPS = 100
WEIGHT_DECAY = 0.1
CONTEXT_WEIGHT = 0.1       # loss weight of the tokens of the user and the template
INT4_FROM = 0.5            # share of the steps after which every other step uses weights rounded to int4
SAVE_EVERY = 100


def train_tokenizer(path, vocab_size):
    """Writes a SentencePiece BPE model, trained on single messages."""
    sentences = (text for messages in conversations(SEED, TOKENIZER_CONVERSATIONS)
                 for role, content in messages for text in [role, *content.split("\n")])
    with open(path, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sentences, model_writer=file, model_type="bpe", vocab_size=vocab_size,
            byte_fallback=True, split_digits=True, add_dummy_prefix=False, remove_extra_whitespaces=False,
            normalization_rule_name="identity", character_coverage=1.0, unk_id=0, bos_id=checkpoint.BOS,
            eos_id=checkpoint.EOS, pad_id=-1, control_symbols=["<|im_start|>", "<|im_end|>"],
            shuffle_input_sentence=False, num_threads=1, minloglevel=1)


def encode(tokenizer, messages, limit):
    """Returns the tokens of a conversation and the loss weight of each, both cut to `limit`."""
    tokens, weights = [checkpoint.BOS], [0.0]
    for role, content in messages:
        encoded, head = tokenizer.message(role, content)
        tokens += encoded
        if role == "assistant":
            weights += [CONTEXT_WEIGHT] * head + [1.0] * (len(encoded) - head - 1) + [CONTEXT_WEIGHT]
        else:
            weights += [CONTEXT_WEIGHT] * len(encoded)
    return tokens[:limit], weights[:limit]


def pad(rows):
    """Returns tokens [batch, length] and weights [batch, length] of rows of similar length."""
    length = max(len(tokens) for tokens, _ in rows)
    tokens = torch.tensor([tokens + [0] * (length - len(tokens)) for tokens, _ in rows])
    weights = torch.tensor([weights + [0.0] * (length - len(weights)) for _, weights in rows])
    return tokens, weights


def batches_by_length(rows):
    """Groups rows of similar length into batches of at most BATCH_TOKENS tokens."""
    batch = []
    for row in sorted(rows, key=lambda row: len(row[0])):
        if batch and (len(batch) + 1) * len(row[0]) > BATCH_TOKENS:
            yield pad(batch)
            batch = []
        batch.append(row)
    yield pad(batch)


def training_batches(tokenizer, limit, seed):
    """Yields batches of conversations that do not repeat."""
    source, rng = conversations(seed, 1 << 40), random.Random(seed)
    while True:
        rows, size = [], 0
        while size < BATCHES_IN_POOL * BATCH_TOKENS:
            rows.append(encode(tokenizer, next(source), limit))
            size += len(rows[-1][0])
        batches = list(batches_by_length(rows))
        rng.shuffle(batches)
        yield from batches


def loss_of(model, tokens, weights):
    """Returns the weighted mean of the next-token loss, and the sum of the weights."""
    logits = model(tokens[:, :-1])
    losses = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    weights = weights[:, 1:].flatten()
    return (losses * weights).sum() / weights.sum(), weights.sum()


@torch.no_grad()
def held_out_loss(model, tokenizer):
    """Returns the mean loss of the assistant's tokens in conversations from another seed."""
    total = count = 0.0
    limit = model.config.max_position_embeddings
    rows = [encode(tokenizer, messages, limit) for messages in conversations(HELD_OUT_SEED, HELD_OUT_CONVERSATIONS)]
    for tokens, weights in batches_by_length(rows):
        loss, weight = loss_of(model, tokens, (weights == 1.0).float())
        total += float(loss * weight)
        count += float(weight)
    return total / count


def replicas_of(model):
    """Returns the model and copies of it that share its weights but not its gradients."""
    replicas = [model] + [copy.deepcopy(model) for _ in range(REPLICAS - 1)]
    for replica in replicas[1:]:
        for own, shared in zip(replica.parameters(), model.parameters()):
            own.data = shared.data
    return replicas


def add_gradients(replicas, batches, threads):
    """Leaves the mean gradient of one batch per replica in the first replica; returns the mean loss."""
    def backward(replica, batch):
        replica.zero_grad(set_to_none=True)
        loss, _ = loss_of(replica, *batch)
        loss.backward()
        return float(loss)

    losses = list(threads.map(backward, replicas, batches))
    for parameters in zip(*(replica.parameters() for replica in replicas)):
        parameters[0].grad = sum(parameter.grad for parameter in parameters) / len(parameters)
    return sum(losses) / len(losses)


def learning_rate(step, steps, peak):
    warmup = min(1.0, (step + 1) / WARMUP_STEPS)
    return peak * warmup * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / steps)))


def train(model, tokenizer, tokenizer_path, arguments):
    matrices = [parameter for parameter in model.parameters() if parameter.dim() == 2]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors,
        "weight_decay": 0.0}],
                                  betas=(0.9, 0.98))
    batches = training_batches(tokenizer, model.config.max_position_embeddings, arguments.seed)
    replicas, threads = replicas_of(model), ThreadPoolExecutor(REPLICAS)
    start, recent = time.time(), 0.0
    for step in range(arguments.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, arguments.steps, arguments.peak_rate)
        for replica in replicas:
            replica.set_rounding(round_to_int4 if step > INT4_FROM * arguments.steps and step % 2 else None)
        loss = add_gradients(replicas, [next(batches) for _ in replicas], threads)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent = loss if step == 0 else 0.95 * recent + 0.05 * loss
        if step % 25 == 0:
            print(f"step {step:5d}  loss {recent:.3f}  {time.time() - start:.0f} s", flush=True)
        if (step + 1) % SAVE_EVERY == 0 or step + 1 == arguments.steps:
            checkpoint.save(arguments.out, model, tokenizer_path)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=os.path.join(here, "cria-demo"))
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--start-from", metavar="DIRECTORY", help="continue training this checkpoint, with its tokenizer")
    parser.add_argument("--peak-rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=SEED, help="of the training conversations")
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    config = ModelConfig()
    with tempfile.TemporaryDirectory() as work:
        tokenizer_path = os.path.join(work, "tokenizer.model")
        if arguments.start_from:
            model, tokenizer = checkpoint.load(arguments.start_from)
            shutil.copyfile(os.path.join(arguments.start_from, "tokenizer.model"), tokenizer_path)
        else:
            train_tokenizer(tokenizer_path, config.vocab_size)
            model, tokenizer = Llama(config), checkpoint.ChatTokenizer(tokenizer_path)
        print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters", flush=True)
        train(model, tokenizer, tokenizer_path, arguments)

    model, tokenizer = checkpoint.load(arguments.out)
    for name, rounding in (("bf16", None), ("int8", round_to_int8), ("int4", round_to_int4)):
        model.set_rounding(rounding)
        print(f"held-out loss, {name} weights: {held_out_loss(model, tokenizer):.4f}")
    samples.show(arguments.out)


if __name__ == "__main__":
    main()
