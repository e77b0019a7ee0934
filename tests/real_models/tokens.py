"""Whether texts come back from a model's tokens, and whether greedy texts are what they are however they are computed."""

import os
import unicodedata

from programs import expect, post

HERE = os.path.dirname(os.path.abspath(__file__))
# Several scripts, marks that combine, digits, indents, and letters of four bytes.
LINES = [
    "The quick brown fox jumps over the lazy dog.",
    "Straße, Übergröße, façade, naïve, smørrebrød, żółć, ő.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "いろはにほへと ちりぬるを。漢字かな交じり文、全角１２３。",
    "한국어 문장입니다. 中文句子，没有空格。",
    "مرحبا بالعالم — שלום עולם — नमस्ते दुनिया",
    "e\u0301 a\u0308 o\u0302\u0323 \u200d\u200b \ufeff",
    "👩‍🔬 🇳🇴 🦙🦙 \U0001d54f\U00020000",
    "3.14159 1000000 0x1F 2026-11-28 1/2 50%",
    "def f(x):\n\tif x:\n        return x  # \t tabs\r\n\n\n    pass",
    "   leading, double  and trailing spaces   ",
    "<b>&amp;</b> {\"a\": [1, 2, {\"b\": null}]} \\n \\\\ `code` ~~~",
]
BEGINNING = "The capital of France is"
ANSWER = "Paris"


def texts():
    for name in ("story.txt", "code.txt"):
        with open(os.path.join(HERE, "texts", name), encoding="utf-8") as file:
            yield file.read()


def check_tokens(programs, model):
    count = 0
    with programs.server(model, "-c", "512", "-np", "1") as url:
        for text in [*LINES, *texts()]:
            tokens = post(url, "/tokenize", {"content": text})["tokens"]
            back = post(url, "/detokenize", {"tokens": tokens})["content"]
            # Some tokenizers compose letters and their marks.
            expect(back in (text, unicodedata.normalize("NFC", text)), "a text does not come back from its tokens",
                   repr(text), repr(back))
            count += len(tokens)
    print(f"tokens: {len(LINES) + 2} texts come back from their {count} tokens", flush=True)


def check_greedy(programs, model):
    """A greedy text must not depend on threads, chunks of the prompt, or drafts."""
    story = next(texts())[:1200]
    run = ["run", "-m", model, "-c", "1024", "-n", "64", "--temp", "0", "-p", story]
    expected = programs.cria(*run, "-t", "2")
    expect(len(expected) > len(story), "the model writes nothing", repr(expected))
    for flags in (["-t", "1"], ["-t", "2", "-b", "16"], ["-t", "1", "--draft-ngram", "3"]):
        text = programs.cria(*run, *flags)
        expect(text == expected, f"a greedy text is another one with {' '.join(flags)}", repr(expected), repr(text))
    text = programs.cria("run", "-m", model, "-c", "512", "-n", "8", "--temp", "0", "-p", BEGINNING)
    expect(ANSWER in text, "the model does not know the capital of France", repr(text))
    print("tokens: a greedy text is the same with 1 and 2 threads, chunks of 16 tokens, and drafts; the model knows "
          "the capital of France", flush=True)
