# SPDX-License-Identifier: Apache-2.0
"""Train the perceptron for digits, and write its folder.

    python -m weights.firmware.digits_train [--output FOLDER]

Needs scikit-learn, which brings the pictures. Equal versions of it and of numpy give equal weights.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import sklearn
from safetensors.numpy import save_file
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from weights.firmware.bytelm import CHECKPOINTS, CONFIG_FILE, WEIGHTS_FILE
from weights.firmware.digits import PIXEL_MAX, enlarged

SEED = 20240607
HIDDEN = 32
HELD_OUT = 360
SAMPLES = 100
"""Of the held-out pictures, how many are shipped for the programs."""


def train(output: Path) -> None:
    """Train and write weights, samples, configuration and model card."""
    pictures, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(labels))
    pictures, labels = pictures[order].astype(np.uint8), labels[order].astype(np.uint8)
    large = enlarged(pictures) / PIXEL_MAX
    held_out, rest = slice(0, HELD_OUT), slice(HELD_OUT, None)
    model = MLPClassifier((HIDDEN,), alpha=1e-3, max_iter=300, random_state=SEED)
    model.fit(large[rest], labels[rest])
    hidden = np.maximum(large[rest] @ model.coefs_[0] + model.intercepts_[0], 0.0)
    tensors = {
        "samples": pictures[:SAMPLES],
        "labels": labels[:SAMPLES],
    }
    for name, weight, bias in zip(
        ("hidden", "output"), model.coefs_, model.intercepts_, strict=True
    ):
        tensors[f"{name}.weight"] = np.ascontiguousarray(weight.T).astype(np.float32)
        tensors[f"{name}.bias"] = bias.astype(np.float32)
    config = {
        "hidden_max": float(hidden.max()),
        "seed": SEED,
        "scikit_learn": sklearn.__version__,
        "train_pictures": len(labels) - HELD_OUT,
        "held_out_pictures": HELD_OUT,
        "epochs": int(model.n_iter_),
        "train_accuracy": float(model.score(large[rest], labels[rest])),
        "held_out_accuracy": float(model.score(large[held_out], labels[held_out])),
    }
    save_file(tensors, output / WEIGHTS_FILE)
    (output / WEIGHTS_FILE).chmod(0o644)
    (output / CONFIG_FILE).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    (output / "README.md").write_text(card_text(config), encoding="utf-8")


def card_text(config: dict[str, float | int | str]) -> str:
    """Return the model card."""
    return f"""\
---
license: apache-2.0
---

# digits

A perceptron of 25,450 parameters (784 pixels, 32 hidden with ReLU, 10 outputs) for
`firmware/examples/mnist`, which computes it in INT8 with the coprocessor's instructions.

**It was not trained on MNIST**, which no package registry carries. The pictures are the 1,797
digits of 8 x 8 pixels that scikit-learn ships ("Optical Recognition of Handwritten Digits",
E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, CC BY 4.0), scaled up to 28 x 28 by
linear interpolation (`weights/firmware/digits.py`): rows of 784 elements, as MNIST's, and easier to
tell apart.

| | |
|---|---|
| pictures to train | {config["train_pictures"]} |
| pictures held out, drawn by the seed | {config["held_out_pictures"]} |
| float32 accuracy, training | {config["train_accuracy"]:.2%} |
| float32 accuracy, held out | {config["held_out_accuracy"]:.2%} |
| training | Adam of scikit-learn {config["scikit_learn"]}, {config["epochs"]} epochs |
| seed | {config["seed"]} |

`model.safetensors` also holds {SAMPLES} of the held-out pictures, 8 x 8, with their digits, for the
programs; they stay under CC BY 4.0. The weights are published under Apache-2.0. `config.json` has
the largest hidden value of the training pictures, the scale of the integer model. To reproduce:

```
pip install scikit-learn=={config["scikit_learn"]}
python -m weights.firmware.digits_train
```
"""


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description="Train the perceptron for digits.")
    parser.add_argument("--output", type=Path, default=CHECKPOINTS / "digits")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    train(given.output)


if __name__ == "__main__":
    main()
