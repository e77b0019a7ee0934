"""Prints greedy conversations with the demo checkpoint, with its weights as they are and rounded to int8 and int4.

Usage: python3 samples.py [checkpoint directory]
"""

import os
import sys

import checkpoint
from model import round_to_int4, round_to_int8

CONVERSATIONS = [
    ["Hello!", "My name is Ann.", "what are you?", "where do you run", "What is my name?", "Thank you!", "bye"],
    ["Who are you?", "tell me more", "how much memory do you need?", "are you alive?", "why?"],
    ["What is a KV cache?", "and XNNPACK?", "what is int4", "What is photosynthesis?", "why not?",
     "then what do you know?"],
    ["Tell me a short story about a llama.", "What was its name?", "who helped?", "another one please"],
    ["hi, I'm Zorbel and I live in Oslo", "my favourite colour is green", "I have a dog called Rex",
     "what is my dog called?", "what's my favorite color?", "what is my name?"],
    ["what's the capital of australia?", "what is 12 * 7", "can you write a python script for me",
     "whats the weather like", "how do i fix my fridge", "who is Marbo Tingle?"],
    ["how is Cria different from other runtimes?", "which commands are there?", "Do I need Python?", "is it free"],
    ["I am bored", "yes please", "nice story!", "say good morning", "count to 6", "asdfgh"],
    ["wat is a lama", "and what do you call a baby one?", "do you like them?", "tell me a joke", "write me a poem"],
]
SYSTEM_PROMPT = "You are Cria, a baby llama. Answer in short sentences."


def show(directory, conversations=CONVERSATIONS):
    model, tokenizer = checkpoint.load(directory)
    for name, rounding in (("bf16", None), ("int8", round_to_int8), ("int4", round_to_int4)):
        model.set_rounding(rounding)
        print(f"\n===== {name} weights")
        for index, questions in enumerate(conversations):
            messages = [("system", SYSTEM_PROMPT)] if index % 2 else []
            for question in questions:
                messages.append(("user", question))
                answer = tokenizer.decode(model.answer(tokenizer.prompt(messages), checkpoint.IM_END))
                messages.append(("assistant", answer))
                print(f"  > {question}\n    {answer}")
            print()


if __name__ == "__main__":
    show(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "cria-demo"))
