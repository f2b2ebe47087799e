"""From ``privacy-gate.yaml`` to a frozen :class:`Policy`, or to every mistake in it at once, each with ``file:line``."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from mlflow_privacy_gate.errors import PolicyError
from mlflow_privacy_gate.policy.document import SIZE_LIMIT, Document, dotted, read_document
from mlflow_privacy_gate.policy.model import Policy, PresetName
from mlflow_privacy_gate.policy.presets import PRESETS, STRICTNESS
from mlflow_privacy_gate.policy.rendering import effective_yaml
from mlflow_privacy_gate.policy.values import nearest, shown

_UNSAFE = "unsafe_"
_OWN_FLAG = ("margin", "default")  # loosened by `margin.unsafe_above_default: true`
_NOT_KEYS = frozenset(name for name, field in Policy.model_fields.items() if field.exclude)
_EXPECTED = {
    "missing": "this key is missing",
    "tuple_type": "expected a list",
    "mapping_type": "expected keys and values",
    "dict_type": "expected keys and values",
    "model_type": "expected keys and values",
    "model_attributes_type": "expected keys and values",
}


def parse_policy(text: str | bytes, name: str = "privacy-gate.yaml", *, folder: Path | None = None) -> Policy:
    """Parse a policy; PolicyError lists every mistake as ``name:line: key: expected …, got …``.

    ``name`` is shown in messages and recorded in evidence; ``folder`` is where relative paths in the policy count from.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    document = read_document(data, name)
    if document.problems and not document.values:  # not even YAML: nothing further can be said
        raise PolicyError(document.sorted_problems())
    loosened = _resolve_unsafe(document)
    preset = _preset(document)
    policy = _validated(document, preset)
    _report_loosening(document, preset, loosened)
    if document.problems or policy is None:
        raise PolicyError(document.sorted_problems())
    return policy.model_copy(
        update={
            "sha256": hashlib.sha256(data).hexdigest(),
            "source_name": name,
            "folder": folder,
            "loosened": tuple(dotted(path) for path in loosened),
        }
    )


def load_policy(path: Path) -> Policy:
    """Load a policy file; PolicyError when it is missing, unreadable or has mistakes."""
    return parse_policy(read_policy_file(path), path.name, folder=path.absolute().parent)


def read_policy_file(path: Path, name: str | None = None) -> bytes:
    """Read at most as much of a policy file as a policy may have; PolicyError names it (by its path, else) and says why not."""
    try:
        with open(path, "rb", opener=_unwaiting) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise PolicyError([f"{name or path}: is a pipe or a device; a policy is a regular file"])
            return stream.read(SIZE_LIMIT + 1)
    except OSError as error:
        reason = "is a folder; name the file in it" if path.is_dir() else f"cannot be read: {error.strerror or error}"
        raise PolicyError([f"{name or path}: {reason}"]) from error
    except ValueError as error:  # a NUL byte in the path
        raise PolicyError([f"{name or path!r}: cannot be read: {error}"]) from error


def _unwaiting(path: str, flags: int) -> int:
    """Open a file so that one swapped for a pipe does not hang the reader."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def built_in_policy() -> Policy:
    """Return the policy that holds where none is named: the standard preset, no keys; its sha256 is of its own YAML text."""
    return parse_policy(effective_yaml(Policy()), "built-in policy")


def _resolve_unsafe(document: Document) -> tuple[tuple[str, ...], ...]:
    """Put the value of every ``unsafe_`` form in the place of its key, and say which keys these were."""
    loosened = []
    for path in STRICTNESS:
        section: Any = document.values
        for part in path[:-1]:
            section = section.get(part) if isinstance(section, dict) else None
        unsafe = (*path[:-1], _UNSAFE + path[-1])
        if path == _OWN_FLAG or not isinstance(section, dict) or unsafe[-1] not in section:
            continue
        if path[-1] in section:
            document.report(unsafe, f"stands beside `{dotted(path)}`: keep one of them")
        section[path[-1]] = section.pop(unsafe[-1])
        document.lines[path] = document.lines[unsafe]
        loosened.append(path)
    return tuple(loosened)


def _preset(document: Document) -> Mapping[str, Any]:
    name = document.values.get("preset", PresetName.STANDARD)
    known = isinstance(name, str) and name in list(PresetName)
    return PRESETS[PresetName(name) if known else PresetName.STANDARD]


def _validated(document: Document, preset: Mapping[str, Any]) -> Policy | None:
    for key in _NOT_KEYS & document.values.keys():
        document.report((key,), "unknown key")
    merged = {key: value for key, value in _merged(preset, document.values).items() if key not in _NOT_KEYS}
    if "version" not in document.values:
        document.problems.append((1, "version: this key is missing; the file's format is `version: 1`"))
    try:
        return Policy.model_validate(merged)
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            path = tuple(part for part in problem["loc"] if part != "[key]")
            document.report(path, _explained(problem["type"], problem["msg"], problem["input"], path))
        return None


def _merged(preset: Mapping[Any, Any], ours: Mapping[Hashable, object]) -> dict[Hashable, Any]:
    """Lay the file over the preset: mappings key by key, everything else replaced."""
    merged: dict[Hashable, Any] = dict(preset)
    for key, value in ours.items():
        below = preset.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _explained(kind: str, message: str, got: object, path: tuple[object, ...]) -> str:
    if kind == "extra_forbidden":
        hint = nearest(str(path[-1]), _known_keys(path[:-1]))
        return f"unknown key ({hint})" if hint else f"unknown key; known here: {', '.join(_known_keys(path[:-1]))}"
    if kind == "missing":
        return _EXPECTED[kind]
    if kind in _EXPECTED:
        return f"{_EXPECTED[kind]}, got {shown(got)}"
    return message


def _known_keys(path: tuple[object, ...]) -> list[str]:
    model: Any = Policy
    for part in path:
        if isinstance(part, str) and part in model.model_fields:
            model = model.model_fields[part].annotation
            model = next((arm for arm in getattr(model, "__args__", ()) if _is_model(arm)), model)
    return [name for name, field in model.model_fields.items() if not field.exclude]


def _is_model(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _report_loosening(document: Document, preset: Mapping[str, Any], loosened: tuple[tuple[str, ...], ...]) -> None:
    """Report each key that the file makes looser than its preset without saying ``unsafe_``."""
    for path, rule in STRICTNESS.items():
        ours, fixed = _at(document.values, path), _at(preset, path)
        faulty = [at for at in document.faulty if at[: len(path)] == path]
        if isinstance(ours, dict):  # its sound keys are judged, whatever the others are
            ours = {key: value for key, value in ours.items() if (*path, key) not in faulty}
            faulty = [at for at in faulty if at == path]
        if ours is None or path in loosened or faulty:
            continue
        if path == _OWN_FLAG and _at(document.values, ("margin", "unsafe_above_default")) is True:
            continue
        try:
            looser = rule(ours, fixed)
        except (TypeError, AttributeError, ValueError):  # of the wrong type, which has been reported as such
            continue
        if looser:
            document.report(path, f"{looser}; loosening it needs {_unsafe_form(path)}")


def _unsafe_form(path: tuple[str, ...]) -> str:
    if path == _OWN_FLAG:
        return "`margin.unsafe_above_default: true`"
    return f"`{dotted((*path[:-1], _UNSAFE + path[-1]))}` in its place"


def _at(values: Mapping[Any, Any], path: tuple[str, ...]) -> Any:
    for part in path:
        values = values.get(part) if isinstance(values, Mapping) else None  # type: ignore[assignment]
    return values
