"""The pattern language of the tables, and the ways in which people type.

A pattern is a sentence with choices in square brackets, which may be nested or empty, and slots in braces:
    "[Hi|Hello][ there|], {name}!"
"""

import re

_INNERMOST_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")


def expand(pattern, rng, slots=None):
    """Returns one sentence of a pattern (or of one pattern out of a list)."""
    if not isinstance(pattern, str):
        pattern = rng.choice(pattern)
    while True:
        pattern, replaced = _INNERMOST_CHOICE.subn(lambda match: rng.choice(match[1].split("|")), pattern)
        if not replaced:
            break
    return _SLOT.sub(lambda match: slots[match[1]], pattern)


def capitalize(sentence):
    return sentence[:1].upper() + sentence[1:]


_SHORT_FORMS = [
    ("what is", "what's"), ("who is", "who's"), ("where is", "where's"), ("I am", "I'm"), ("do not", "don't"),
    ("cannot", "can't"), ("it is", "it's"), ("that is", "that's"), ("you are", "you're"), ("how is", "how's"),
]
_CARELESS_FORMS = [
    ("what's", "whats"), ("who's", "whos"), ("I'm", "im"), ("don't", "dont"), ("can't", "cant"), ("it's", "its"),
    ("that's", "thats"), ("you're", "youre"), ("are you", "are u"), ("do you", "do u"), ("can you", "can u"),
    ("please", "pls"), ("your", "ur"), ("because", "cause"),
]


def _replace_some(text, forms, rng, probability):
    for long_form, short_form in forms:
        if rng.random() < probability:
            text = re.sub(r"\b" + re.escape(long_form) + r"\b", short_form, text)
            text = re.sub(r"\b" + re.escape(capitalize(long_form)) + r"\b", capitalize(short_form), text)
    return text


def _mistype(text, rng, keep):
    """Spoils one letter inside a word of four letters or more that is not in `keep`."""
    words = [m for m in re.finditer(r"[A-Za-z]{4,}", text) if not any(m[0] in kept for kept in keep)]
    if not words:
        return text
    word = rng.choice(words)
    at = word.start() + rng.randrange(1, len(word[0]) - 1)
    kind = rng.randrange(3)
    if kind == 0:
        return text[:at] + text[at + 1] + text[at] + text[at + 2:]
    if kind == 1:
        return text[:at] + text[at + 1:]
    return text[:at] + text[at] + text[at:]


def as_typed(sentence, rng, keep=()):
    """Returns a user's sentence as people type it: short forms, lower case, missing marks, a typo now and then.

    `keep` lists the words that have to survive unchanged because the answer repeats them.
    """
    text = capitalize(sentence)
    if rng.random() < 0.35:
        text = _replace_some(text, _SHORT_FORMS, rng, 0.7)
    careless = rng.random()
    if careless < 0.15:
        text = _replace_some(text, _CARELESS_FORMS, rng, 0.5)
    if careless < 0.4:
        parts = re.split("(" + "|".join(map(re.escape, keep)) + ")", text) if keep else [text]
        text = "".join(part if part in keep else part.lower() for part in parts)
    if rng.random() < 0.35:
        text = text.rstrip(".?!")
    if rng.random() < 0.1:
        text = _mistype(text, rng, keep)
    if rng.random() < 0.01:
        text = text.upper() if not keep else text
    if rng.random() < 0.02:
        text += rng.choice(["?", "!", "??", "..", " :)"])
    return text
