"""Writes and reads the Hugging Face directory of the demo model, and turns conversations into tokens."""

import json
import os
import shutil
import struct

import numpy
import sentencepiece
import torch

from model import Llama, ModelConfig

BOS, EOS, IM_START, IM_END = 1, 2, 3, 4
CHAT_TEMPLATE = ("{% for message in messages %}"
                 "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
                 "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


class ChatTokenizer:
    """ChatML on top of SentencePiece. Control symbols are single ids; the text between them is encoded separately."""

    def __init__(self, path):
        self._pieces = sentencepiece.SentencePieceProcessor(model_file=path)
        self._newline = self._pieces.encode("\n")

    def message(self, role, content):
        """Returns the tokens of one message and how many of them come before its content."""
        head = [IM_START] + self._pieces.encode(role + "\n")
        return [IM_START] + self._pieces.encode(role + "\n" + content) + [IM_END] + self._newline, len(head)

    def prompt(self, messages):
        """Returns the tokens up to the place where the assistant's next answer starts."""
        tokens = [BOS]
        for role, content in messages:
            tokens += self.message(role, content)[0]
        return tokens + [IM_START] + self._pieces.encode("assistant\n")

    def decode(self, tokens):
        return self._pieces.decode(tokens)


def _write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")


def _write_safetensors(path, tensors):
    """Writes named tensors as bf16: a length, a JSON table, the bytes."""
    table, parts, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name, tensor in sorted(tensors.items()):
        data = tensor.detach().bfloat16().contiguous().view(torch.int16).numpy().astype("<i2").tobytes()
        table[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [offset, offset + len(data)]}
        parts.append(data)
        offset += len(data)
    header = json.dumps(table, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + b"".join(parts))


def _read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 8 + struct.unpack_from("<Q", data)[0]
    table = json.loads(data[8:start])
    table.pop("__metadata__", None)
    tensors = {}
    for name, entry in table.items():
        first, last = entry["data_offsets"]
        bits = numpy.frombuffer(data[start + first:start + last], dtype="<i2").copy()
        tensors[name] = torch.from_numpy(bits).view(torch.bfloat16).float().reshape(entry["shape"])
    return tensors


def save(directory, model, tokenizer_path):
    """Writes the whole directory under a temporary name and then puts it in place of the old one."""
    config, new = model.config, directory + ".new"
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new)
    _write_safetensors(os.path.join(new, "model.safetensors"), model.state_dict())
    shutil.copyfile(tokenizer_path, os.path.join(new, "tokenizer.model"))
    _write_json(os.path.join(new, "config.json"), {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", **vars(config),
        "hidden_act": "silu", "attention_bias": False, "attention_dropout": 0.0, "mlp_bias": False,
        "rope_scaling": None,
        "tie_word_embeddings": True, "bos_token_id": BOS, "eos_token_id": IM_END, "pad_token_id": None,
        "initializer_range": 0.02, "pretraining_tp": 1, "use_cache": True, "torch_dtype": "bfloat16"})
    _write_json(os.path.join(new, "generation_config.json"), {
        "bos_token_id": BOS, "eos_token_id": [EOS, IM_END], "do_sample": True, "temperature": 0.7, "top_p": 0.9})
    special = {0: "<unk>", BOS: "<s>", EOS: "</s>", IM_START: "<|im_start|>", IM_END: "<|im_end|>"}
    _write_json(os.path.join(new, "tokenizer_config.json"), {
        "tokenizer_class": "LlamaTokenizer", "legacy": False, "add_bos_token": True, "add_eos_token": False,
        "add_prefix_space": False,
        "added_tokens_decoder": {
            str(token): {"content": content, "lstrip": False, "normalized": False, "rstrip": False,
                         "single_word": False, "special": True} for token, content in special.items()},
        "bos_token": "<s>", "eos_token": "<|im_end|>", "unk_token": "<unk>", "pad_token": None,
        "clean_up_tokenization_spaces": False,
        "model_max_length": config.max_position_embeddings, "chat_template": CHAT_TEMPLATE})
    shutil.rmtree(directory, ignore_errors=True)
    os.rename(new, directory)


def load(directory):
    """Returns the model and the tokenizer of a directory that `save` wrote."""
    with open(os.path.join(directory, "config.json"), encoding="utf-8") as file:
        fields = json.load(file)
    model = Llama(ModelConfig(**{name: fields[name] for name in ModelConfig.__dataclass_fields__}))
    model.load_state_dict(_read_safetensors(os.path.join(directory, "model.safetensors")))
    return model.eval(), ChatTokenizer(os.path.join(directory, "tokenizer.model"))
