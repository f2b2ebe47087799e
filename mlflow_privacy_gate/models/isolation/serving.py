"""The model's process at work: it opens the model, answers what it is asked, and ends when the gate has no more questions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from mlflow_privacy_gate.errors import ModelUnusable, PrivacyGateError
from mlflow_privacy_gate.models.catalogue import load_model
from mlflow_privacy_gate.models.isolation.answers import arrays_of_observations, arrays_of_references
from mlflow_privacy_gate.models.isolation.arrays import described
from mlflow_privacy_gate.models.isolation.frames import Buffer, Frame, read_frame, write_frame
from mlflow_privacy_gate.models.isolation.rows import received

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.attacks.observations import Observations
    from mlflow_privacy_gate.models._interface import LoadedModel

Answer = tuple[dict[str, Any], list[Buffer]]
LONGEST_MESSAGE = 10_000


def serve(requests: BinaryIO, answers: BinaryIO, folder: Path) -> None:
    """Open the model in ``folder`` and answer requests until there are none, or until one fails: then its reason is the last answer."""
    try:
        model = load_model(folder)
        _write(answers, model, {"parameters": dict(model.parameters)}, [])
        while (request := read_frame(requests, largest_body=sys.maxsize)) is not None:
            _write(answers, model, *_ask(model, request, answers))
    except PrivacyGateError as exc:
        write_frame(answers, {"error": type(exc).__name__, "message": exc.message[:LONGEST_MESSAGE]})
    except MemoryError:
        write_frame(answers, {"error": ModelUnusable.__name__, "message": "the model ran out of memory"})


def _write(answers: BinaryIO, model: LoadedModel, header: Mapping[str, Any], bodies: list[Buffer]) -> None:
    """Write an answer, with what is known of the model by now."""
    known = {"notes": asdict(model.notes), "input_columns": model.input_columns}
    write_frame(answers, {**header, **known}, bodies)


def _ask(model: LoadedModel, request: Frame, answers: BinaryIO) -> Answer:
    features, labels = _rows(request)
    asked: Mapping[str, Any] = request.header
    if asked["ask"] == "observe":
        return _seen(model.observe(features, labels))
    if asked["ask"] == "refit":
        anew = model.refit(
            features, labels, train_rows=asked["train_rows"], seed=asked["seed"], changes=asked["changes"]
        )
        if anew is None:
            return {"refit": False}, []
        header, bodies = _seen(anew)
        return {"refit": True, **header}, bodies
    if asked["ask"] == "reproduced":
        return {"reproduced": model.reproduced(features, labels, train_rows=asked["train_rows"])}, []
    found = model.references(
        features,
        labels,
        count=asked["count"],
        seed=asked["seed"],
        keep_posteriors=asked["keep_posteriors"],
        changes=asked["changes"],
        progress=lambda done, of: write_frame(answers, {"progress": [done, of]}),
    )
    if found is None:
        return {"references": False}, []
    words, bodies = described(arrays_of_references(found))
    return {"references": True, "origin": found.origin, "notes_of_references": found.notes, "arrays": words}, bodies


def _seen(seen: Observations) -> Answer:
    words, bodies = described(arrays_of_observations(seen))
    return {"kind": seen.kind, "basis": seen.basis, "arrays": words}, bodies


def _rows(request: Frame) -> tuple[pd.DataFrame, pd.Series[Any]]:
    body, frames = memoryview(request.body), []
    for objects, length in zip(request.header["objects"], request.header["lengths"], strict=True):
        frames.append(received(body[:length], objects))
        body = body[length:]
    features, labels = frames
    return features, labels.iloc[:, 0]
