#!/usr/bin/env python3
"""Tests that XNNPACK's kernels for a model's products are those of the emulated core, and that they do not run where
our own do, and reports them.

    xnnpack_kernels_test.py BUILD HOST_BUILD CHECKPOINT CORE
"""

import collections
import os
import pathlib
import re
import sys
import tempfile

import device_build
import xnnpack_kernels

HAS_DOT_PRODUCTS = {"cortex-a7": False, "cortex-a53": False, "cortex-a72": False, "cortex-a76": True, "max": True}
# What --weights is called, and what XNNPACK calls the products of these weights.
PRODUCTS = {"int4": "qd8_f32_qb4w", "int8": "qd8_f32_qc8w", "f32": "f32"}
# Products that our own kernels compute.
OWN = {"cortex-a53": {"qd8_f32_qb4w"}, "cortex-a72": {"qd8_f32_qb4w"},
       "cortex-a76": {"qd8_f32_qb4w", "qd8_f32_qc8w"}, "max": {"qd8_f32_qb4w", "qd8_f32_qc8w"}}
# What their names have of the instruction sets that ARMv8 got later.
DOT_PRODUCTS = re.compile("dot|i8mm|sme")
# The exit code that tells ctest so.
SKIPPED = 77


def kernels_by_product(build, convert, checkpoint, core):
    """{products: names of the kernels, from their tile on}, after a prompt and some tokens."""
    archive = xnnpack_kernels.archive_kernels(build)
    kernels = collections.defaultdict(set)
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.cria")
        for weights in PRODUCTS:
            xnnpack_kernels.run([convert, "--fast", checkpoint, "-o", model, "--weights", weights, "--no-verify"])
            code = xnnpack_kernels.translated(
                build, [build.program, "run", "-m", model, "-p", "Hello! Who are you? Where do you run?", "-n", "3",
                        "--ignore-eos", "--temp", "0", "-t", "1", "--no-pack-cache"], core)
            for name in xnnpack_kernels.kernels_run(archive, code).values():
                if match := re.fullmatch(r"xnn_(\w+)_gemm_minmax_ukernel_(\d+x\w+)", name):
                    kernels[match[1]].add(match[2])
    return kernels


def findings(kernels, core):
    """What is wrong with the kernels that a core chose, a sentence each."""
    has_dot_products = HAS_DOT_PRODUCTS[core]
    for products in PRODUCTS.values():
        if products in OWN.get(core, ()):
            if kernels[products]:
                yield f"{products}: XNNPACK's {', '.join(sorted(kernels[products]))} ran instead of our own kernel"
            continue
        rows = {int(name.split("x")[0]) for name in kernels[products]}
        if 1 not in rows:
            yield f"no kernel of {products} for one row was seen"
        if max(rows, default=0) < 2:
            yield f"no kernel of {products} for several rows was seen"
        if products == "f32":
            continue
        for name in sorted(kernels[products]):
            if bool(DOT_PRODUCTS.search(name)) != has_dot_products:
                yield f"{products}: {name} on a core that has {'' if has_dot_products else 'no '}dot products"


def main():
    folder, host, checkpoint, core = sys.argv[1:]
    if core not in HAS_DOT_PRODUCTS:
        sys.exit(f"{core} is missing in the table of this test")
    convert = os.path.join(host, "cli/cria-convert")
    if not os.access(convert, os.X_OK):
        print(f"there is no {convert}: ./dev build makes it")
        return SKIPPED
    kernels = kernels_by_product(device_build.DeviceBuild(pathlib.Path(folder)), convert, checkpoint, core)
    for products in sorted(PRODUCTS.values()):
        names = kernels[products]
        print(f"report: {core:10}  runs xnn_{products}_gemm_minmax_ukernel_{{{','.join(sorted(names))}}}" if names
              else f"report: {core:10}  runs our own kernel instead of xnn_{products}")
    return "\n".join(findings(kernels, core)) or 0


if __name__ == "__main__":
    sys.exit(main())
