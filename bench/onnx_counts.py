"""MACs and parameters of five well-known models beside their published values.

``python bench/onnx_counts.py FOLDER`` prints a Markdown table and fails if a figure is more than 1 % off.
FOLDER holds ``resnet50.onnx``, ``mobilenet_v2.onnx``, ``vit_b_16.onnx``, ``bert_base_dynamic.onnx`` (symbols ``batch``
and ``seq``) and ``gpt2_small.onnx`` (128 tokens).

Convention of the published MACs: torchvision's "GFLOPS" are multiply-accumulates of convolutions and matrix products,
those of attention included. The MACs of BERT and GPT-2 follow from their papers' sizes: 12 layers of width H = 768, per
layer and token 4 H^2 for the projections, 8 H^2 for the feed-forward part and 2 S H for attention over S tokens; GPT-2's
output layer adds 50,257 H per token.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.table import table_of


def transformer(tokens: int, vocabulary: int) -> int:
    """MACs of 12 layers of width 768, and of an output layer."""
    width = 768
    return tokens * (12 * (12 * width**2 + 2 * tokens * width) + vocabulary * width)


#: (file, bindings, MACs, parameters, source)
PUBLISHED = [
    ("resnet50", {}, 4.09e9, 25_557_032, "torchvision ResNet50_Weights.IMAGENET1K_V1"),
    ("mobilenet_v2", {}, 0.30e9, 3_504_872, "torchvision MobileNet_V2_Weights.IMAGENET1K_V1; Sandler et al. 2018: 300 M"),
    ("vit_b_16", {}, 17.56e9, 86_567_656, "torchvision ViT_B_16_Weights.IMAGENET1K_V1"),
    ("bert_base_dynamic", {"batch": 1, "seq": 128}, transformer(128, 0), 109_482_240,
     "Devlin et al. 2019, sizes of BERT-base; transformers' BertModel with its pooler (590,592), which the file lacks"),
    ("gpt2_small", {}, transformer(128, 50_257), 124_439_808,
     "Radford et al. 2019, sizes of the smallest model; parameters of the released checkpoint"),
]  # fmt: skip


def main() -> int:
    """Print the table; 1 if a figure is more than 1 % off."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    print("| model | MACs | published | off | parameters | published | off | import and table | source |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---|")
    worst = 0.0
    for name, bindings, macs, parameters, source in PUBLISHED:
        started = time.perf_counter()
        table = table_of(load_onnx(folder / f"{name}.onnx"), bindings)
        seconds = time.perf_counter() - started
        off = [int(table.macs) / macs - 1, int(table.parameters) / parameters - 1]
        worst = max(worst, *map(abs, off))
        print(
            f"| {name} | {int(table.macs):,} | {macs:,.0f} | {off[0]:+.2%} | {int(table.parameters):,} | {parameters:,} | "
            f"{off[1]:+.2%} | {seconds:.2f} s | {source} |"
        )
    return int(worst > 0.01)


if __name__ == "__main__":
    sys.exit(main())
