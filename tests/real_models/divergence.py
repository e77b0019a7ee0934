"""What each format loses of the numbers of a GGUF file, in nats of KL divergence from these numbers in f32."""

import glob
import os
import time

from programs import expect

HERE = os.path.dirname(os.path.abspath(__file__))


class Format:
    """Arguments of the converter; the most that may be lost, in nats; whether choosing codes takes minutes."""

    def __init__(self, *arguments, most, slow=True):
        self.arguments = arguments
        self.most = most
        self.slow = slow


FORMATS = {
    "keep": Format(most=0.008, slow=False),
    "int8": Format("--weights", "int8", most=0.008),
    "int6": Format("--weights", "int6", most=0.03),
    "int5": Format("--weights", "int5", most=0.06),
    "int4": Format("--weights", "int4", most=0.15),
    "int3": Format("--weights", "int3", most=0.5),
    "int2": Format("--weights", "int2", most=4.0),
    "int8-fast": Format("--weights", "int8", "--fast", most=0.02, slow=False),
    "qb4w-fast": Format("--weights", "int4", "--fast", most=0.6, slow=False),
}
CONTEXT = "512"
TEXT_BYTES = 20_000  # Of longer texts, the beginning is read.
SHORT_TEXT_BYTES = 2_500


def texts(programs, data, most_bytes):
    """Names and files of the texts: those of this folder, and those of a folder of other data."""
    paths = sorted(glob.glob(os.path.join(HERE, "texts", "*.txt")))
    if data:
        paths += sorted(path for path in glob.glob(os.path.join(data, "text", "*.txt")) if "calibration" not in path)
    for path in paths:
        name = os.path.basename(path).removesuffix(".txt")
        beginning = os.path.join(programs.folder, name + ".txt")
        with open(path, "rb") as whole, open(beginning, "wb") as file:
            file.write(whole.read(most_bytes).decode(errors="ignore").encode())
        yield name, beginning


class Base:
    """The predictions of the numbers in f32, which are computed once for all formats."""

    def __init__(self, programs, gguf, data, most_bytes):
        self.programs = programs
        self.model, _ = programs.convert(gguf, "f32.cria", "--weights", "f32")
        self.logits = {}
        for name, path in texts(programs, data, most_bytes):
            self.logits[name] = os.path.join(programs.folder, name + ".logits")
            programs.cria("eval", "-m", self.model, "-f", path, "-c", CONTEXT, "--save-logits", self.logits[name], "-q")

    def compare(self, model, *flags):
        """For each text, the summary of `cria eval`."""
        return {name: self.programs.json("eval", "-m", model, "--logits", logits, *flags)
                for name, logits in self.logits.items()}

    def remove(self):
        for path in [self.model, *self.logits.values()]:
            os.remove(path)


def cells(found):
    return " | ".join(f"{text['mean_kl']:.4f}, {100 * text['top1_agreement']:.1f}%" for text in found.values())


def check_divergence(programs, gguf, is_small, arguments):
    if arguments.short:
        base = Base(programs, gguf, None, SHORT_TEXT_BYTES)
    else:
        base = Base(programs, gguf, arguments.data, TEXT_BYTES)
    # What int8 keys and values alone cost, beside a cache in f32.
    print("| weights | bits | seconds | " + " | ".join(base.logits) + " |")
    print("| --- | ---: | ---: |" + " --- |" * len(base.logits))
    cache = base.compare(base.model, "--kv", "int8")
    print(f"| f32, cache in int8 | | | {cells(cache)} |", flush=True)
    too_much = [f"a cache in int8 loses {text['mean_kl']:.4f} nats" for text in cache.values() if text["mean_kl"] > 0.004]
    if arguments.short:
        names = ["keep"]
    else:
        names = arguments.format or [name for name, entry in FORMATS.items() if is_small or not entry.slow]
    for name in names:
        begin = time.monotonic()
        model, bits = programs.convert(gguf, "format.cria", *FORMATS[name].arguments)
        seconds = time.monotonic() - begin
        found = base.compare(model)
        os.remove(model)
        print(f"| {name} | {bits:.2f} | {seconds:.0f} | {cells(found)} |", flush=True)
        too_much += [f"{name} loses {text['mean_kl']:.4f} nats" for text in found.values()
                     if not text["mean_kl"] <= FORMATS[name].most]
    base.remove()
    expect(not too_much, "more is lost than may be", *too_much)
