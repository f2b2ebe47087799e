"""Train the same small network on real images without differential privacy, with a little and with a lot, and attack all three.

    pip install "mlflow-privacy-gate[dp]"
    python train.py             # half a minute on a CPU; writes dp_training.png to the working folder
    python train.py --quick     # fewer reference models: a rougher answer in a few seconds

The images are scikit-learn's digits, 8 by 8 pixels: one half to train on, the other to attack and to count accuracy on. Each network is
attacked twice: by its confidence in the true label, and by its loss calibrated with reference networks that were trained the same way on
random halves of all rows.
"""

import sys
from dataclasses import dataclass, replace

import matplotlib as mpl
import numpy as np
from network import Network, Training, train
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from mlflow_privacy_gate import attacks, stats
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.references import References
from mlflow_privacy_gate.stats.accounting import account_prv

mpl.use("Agg")
import matplotlib.pyplot as plt

DELTA = 1e-5  # well below one over the training rows
CLASSES = 10
ATTACKS = ("confidence", "calibrated")
PLAIN = Training(steps=1000, sampling_rate=0.1, learning_rate=0.5)
TRAININGS = {
    "without": PLAIN,
    "moderate": replace(PLAIN, steps=300, sampling_rate=0.2, learning_rate=0.25, noise_multiplier=2.4),
    "strong": replace(PLAIN, steps=50, sampling_rate=0.5, learning_rate=0.25, noise_multiplier=14.0),
}


@dataclass(frozen=True)
class Rows:
    """The images (n, 64), their digits (n,), and which of them are trained on."""

    images: np.ndarray
    digits: np.ndarray
    is_member: np.ndarray

    def observe(self, network: Network) -> Observations:
        """Ask a network about every row."""
        return Observations.from_probabilities(network.probabilities(self.images), self.digits, np.arange(CLASSES))


@dataclass(frozen=True)
class Outcome:
    """What one training gave: its epsilon (None without privacy), accuracy on either side, and each attack's scores (n,)."""

    name: str
    epsilon: float | None
    accuracy_members: float
    accuracy_others: float
    scores: dict[str, np.ndarray]


def main() -> None:
    references = 8 if "--quick" in sys.argv else 64
    rows = split(seed=0)
    with threadpool_limits(limits=1):  # matrices this small only wait for each other on several threads
        outcomes = [attacked(name, how, rows, references) for name, how in TRAININGS.items()]
    table(outcomes, rows)
    draw(outcomes, rows)
    print("\nROC curves with what each epsilon allows at most: dp_training.png")


def split(seed: int) -> Rows:
    """Halve the digits at random."""
    images, digits = load_digits(return_X_y=True)
    is_member = np.zeros(len(digits), dtype=bool)
    is_member[np.random.default_rng(seed).permutation(len(digits))[: len(digits) // 2]] = True
    return Rows(images / 16 - 0.3, digits, is_member)


def attacked(name: str, how: Training, rows: Rows, references: int) -> Outcome:
    """Train on the members, then score every row by each attack."""
    observed = rows.observe(fitted(rows, rows.is_member, how, seed=1))
    halves = np.random.default_rng(2).random((references, len(rows.digits))) < 0.5
    others = [rows.observe(fitted(rows, half, how, seed=100 + at)) for at, half in enumerate(halves)]
    asked = References.from_observations(others, halves)
    right = attacks.scores("correctness", observed)
    return Outcome(
        name,
        epsilon_of(how),
        right[rows.is_member].mean(),
        right[~rows.is_member].mean(),
        {attack: attacks.scores(attack, observed, asked) for attack in ATTACKS},
    )


def fitted(rows: Rows, chosen: np.ndarray, how: Training, seed: int) -> Network:
    return train(rows.images[chosen], rows.digits[chosen], CLASSES, how, seed)


def epsilon_of(how: Training) -> float | None:
    if how.noise_multiplier is None:
        return None
    return account_prv(how.sampling_rate, how.noise_multiplier, how.steps, DELTA).epsilon


def table(outcomes: list[Outcome], rows: Rows) -> None:
    """Print one line a training."""
    heads = ("privacy", "epsilon", "accuracy", "held out", *(f"{attack} AUC" for attack in ATTACKS))
    heads = (*heads, "AUC allowed", "epsilon needed")
    print("  ".join(f"{head:>14}" for head in heads))
    for one in outcomes:
        aucs = [stats.attack_auc(*sides(scores, rows)) for scores in one.scores.values()]
        allowed = "any" if one.epsilon is None else f"{stats.auc_ceiling(one.epsilon, DELTA):.4f}"
        needed = stats.epsilon_lower_bound(
            one.scores, rows.is_member, delta=DELTA, rng=np.random.default_rng(3)
        ).epsilon
        cells = (
            one.name,
            "none" if one.epsilon is None else f"{one.epsilon:.3f}",
            f"{one.accuracy_members:.3f}",
            f"{one.accuracy_others:.3f}",
            *(f"{auc:.4f}" for auc in aucs),
            allowed,
            f"{needed:.3f}",
        )
        print("  ".join(f"{cell:>14}" for cell in cells))


def draw(outcomes: list[Outcome], rows: Rows) -> None:
    """Draw the calibrated attack's ROC curve of each training, and the most that its epsilon allows.

    Both axes begin at ten rows: further left a curve goes by the luck of a few, and may lie above what is allowed.
    """
    figure, axes = plt.subplots(figsize=(7, 6), layout="constrained")
    least = 10 / np.count_nonzero(~rows.is_member)
    rates = np.geomspace(least, 1, 200)
    for one, colour in zip(outcomes, ("#222222", "#b2560d", "#1b6ca8"), strict=True):
        points = stats.roc_points(*sides(one.scores["calibrated"], rows))
        label = f"{one.name} privacy" + ("" if one.epsilon is None else f", epsilon {one.epsilon:.2f}")
        axes.step(points.fpr, points.tpr, where="post", color=colour, label=label)
        if one.epsilon is not None:
            allowed = [stats.tpr_ceiling(one.epsilon, DELTA, float(rate)) for rate in rates]
            axes.plot(rates, allowed, color=colour, linestyle="--", label="  the most it allows")
    axes.plot(rates, rates, color="#999999", linestyle=":", label="chance")
    axes.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.2))
    axes.set(xlabel="false positive rate", ylabel="true positive rate", title="Calibrated attack on the digits network")
    axes.legend()
    figure.savefig("dp_training.png", dpi=120)


def sides(scores: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Part the scores into members and others; a row that too few reference networks cover has none."""
    known = ~np.isnan(scores)
    return scores[known & rows.is_member], scores[known & ~rows.is_member]


if __name__ == "__main__":
    main()
