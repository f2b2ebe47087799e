"""What goes over the pipes between the gate and a model's process: a JSON header and raw bytes, never a pickle.

A frame is the header's length (4 bytes, big-endian), the body's length (8 bytes), the header (UTF-8 JSON, an object) and the body.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

HEAD = struct.Struct(">IQ")
LARGEST_HEADER = 1 << 20

Buffer = bytes | bytearray | memoryview


class NoFrame(ValueError):
    """Bytes that are no frame; the message says what is wrong with them."""


@dataclass(frozen=True)
class Frame:
    """One message: its JSON ``header`` and the ``body`` that the header describes."""

    header: Mapping[str, Any]
    body: Buffer = b""


def lengths(head: bytes, *, largest_body: int) -> tuple[int, int]:
    """Return the lengths of header and body, both within bounds; NoFrame otherwise, before a byte of either is read."""
    header, body = HEAD.unpack(head)
    if not 2 <= header <= LARGEST_HEADER:
        raise NoFrame(f"a header of {header:,} bytes; expected at most {LARGEST_HEADER:,}")
    if body > largest_body:
        raise NoFrame(f"a body of {body:,} bytes; expected at most {largest_body:,}")
    return header, body


def parsed_header(raw: Buffer) -> Mapping[str, Any]:
    """Read a header; NoFrame for anything but one strict JSON object."""
    try:
        header = json.loads(bytes(raw).decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as exc:
        raise NoFrame("a header that is no JSON") from exc
    if not isinstance(header, dict):
        raise NoFrame("a header that is no JSON object")
    return header


def packed(header: Mapping[str, Any], bodies: Iterable[Buffer] = ()) -> list[Buffer]:
    """Lay out one frame as pieces to be written one after the other; the bodies are not copied."""
    raw = json.dumps(header, allow_nan=False).encode("utf-8")
    if len(raw) > LARGEST_HEADER:
        raise NoFrame(f"a header of {len(raw):,} bytes; expected at most {LARGEST_HEADER:,}")
    pieces = [memoryview(body).cast("B") for body in bodies if memoryview(body).nbytes]
    return [HEAD.pack(len(raw), sum(piece.nbytes for piece in pieces)), raw, *pieces]


def write_frame(stream: BinaryIO, header: Mapping[str, Any], bodies: Iterable[Buffer] = ()) -> None:
    """Write one frame to a blocking stream."""
    for piece in packed(header, bodies):
        stream.write(piece)
    stream.flush()


def read_frame(stream: BinaryIO, *, largest_body: int) -> Frame | None:
    """Read one frame from a blocking stream; None where it has ended."""
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    header_length, body_length = lengths(head, largest_body=largest_body)
    header = parsed_header(stream.read(header_length))
    body = stream.read(body_length)
    return Frame(header, body) if len(body) == body_length else None


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)
