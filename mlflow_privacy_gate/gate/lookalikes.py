"""Letters that look alike, read as one: Cyrillic a as Latin a, a full-width or accented letter as the plain one.

MLflow takes any Unicode letter in an alias, so an alias that no eye tells from ``champion`` must count as it. Unicode's
compatibility forms (NFKC: full-width, mathematical, ligatures) and case folding do most of it; the table below adds letters of other
scripts and Latin variants that resemble one basic Latin letter (the kind that Unicode Technical Standard 39 calls confusable).

Likeness has no end, so no table is complete. A foreign character that the table does not know, a digit of another script and a
dash of any kind among them, may therefore stand for any one character: what cannot be told apart for certain counts as guarded. Only
wide characters (Chinese, Japanese, Korean) are taken for what they are, since none of them is as narrow as a Latin letter.
"""

from __future__ import annotations

import unicodedata
from fnmatch import fnmatchcase

from mlflow_privacy_gate.policy.globs import is_set, pieces

# Each Latin letter with its look-alikes. Capitals have a row of their own: capital Eta looks like H, small eta like n.
_CAPITALS = {
    "A": "\u0391\u0410\u13aa\ua4ee",
    "B": "\u0392\u0412\u13f4\ua4d0",
    "C": "\u03f9\u0421\u13df\ua4da\u2ca4",
    "D": "\u13a0\ua4d3",
    "E": "\u0395\u0415\u13ac\ua4f0\u2d39",
    "F": "\u03dc\ua4dd",
    "G": "\u050c\u13c0\ua4d6",
    "H": "\u0397\u041d\u13bb\ua4e7\u2c8e",
    "I": "\u0399\u0406\u04c0\u13a5\ua4f2\u2c92",
    "J": "\u0408\u037f\u13ab\ua4d9",
    "K": "\u039a\u041a\u13e6\ua4d7\u2c94",
    "L": "\u13de\ua4e1\u053c\u2cd0",
    "M": "\u039c\u041c\u03fa\u13b7\ua4df\u2c98",
    "N": "\u039d\ua4e0\u2c9a",
    "O": "\u039f\u041e\u0555\ua4f3\u2c9e",
    "P": "\u03a1\u0420\u13e2\ua4d1\u2ca2",
    "Q": "\u051a\u2d55",
    "R": "\u13a1\u13d2\ua4e3",
    "S": "\u0405\u054f\u13da\u13d5\ua4e2",
    "T": "\u03a4\u0422\u13a2\ua4d4\u2ca6",
    "U": "\u054d\ua4f4",
    "V": "\u0474\u13d9\ua4e6\u2d38",
    "W": "\u051c\u13b3\u13d4\ua4ea",
    "X": "\u03a7\u0425\ua4eb\u2cac",
    "Y": "\u03a5\u04ae\u13bd\u13a9\ua4ec\u2ca8",
    "Z": "\u0396\u13c3\ua4dc",
}
_SMALLS = {
    "a": "\u0251\u03b1\u0430\u1d00",
    "b": "\u0180\u0184\u0185\u0253\u0299\u042c\u044c\u0432\u03b2",
    "c": "\u0188\u0441\u03f2\u1d04\u2ca5",
    "d": "\u0111\u0256\u0257\u0501\u1d05\ua4d2",
    "e": "\u0435\u04bd\u0454\u03b5\u025b\u1d07\u212e",
    "f": "\u0192\u0493\u03dd\u0584\ua730",
    "g": "\u0260\u0261\u0262\u0581\u050d\u1d83",
    "h": "\u0127\u0266\u029c\u04bb\u0570\u043d\u210f",
    "i": "\u0131\u0268\u0269\u026a\u03b9\u0456\u04cf",
    "j": "\u0237\u029d\u0458\u03f3\u0575\u1d0a",
    "k": "\u0199\u03ba\u043a\u049b\u1d0b",
    "l": "\u0142\u019a\u026b\u026d\u029f\u05d5\u05df\u0627\u01c0",
    "m": "\u0271\u043c\u1d0d",
    "n": "\u014b\u019e\u0272\u0273\u0274\u03b7\u0578\u057c\u043f",
    "o": "\u00f8\u0275\u03bf\u03c3\u043e\u0585\u1d0f\u05e1\u0647\u09e6\u0a66\u0b66\u0ce6\u0d66\u0e50\u0ed0\u1040\u101d",
    "p": "\u01a5\u01bf\u00fe\u03c1\u03f1\u0440\u1d18\u2ca3",
    "q": "\u02a0\u051b\u0563\u0566",
    "r": "\u027c\u027d\u027e\u0280\u0433\u1d26",
    "s": "\u0282\u0455\u01bd\ua731",
    "t": "\u0167\u01ad\u0288\u03c4\u0442\u1d1b",
    "u": "\u0289\u028b\u03c5\u057d\u1d1c",
    "v": "\u03bd\u0475\u1d20",
    "w": "\u026f\u0461\u051d\u0561\u03c9\u1d21",
    "x": "\u03c7\u0445\u1d8d",
    "y": "\u01b4\u028f\u0443\u04af\u03b3\u10e7",
    "z": "\u01b6\u0225\u0290\u0291\u1d22",
}
_TABLE = {
    ord(lookalike): letter
    for rows in (_CAPITALS, _SMALLS)
    for letter, lookalikes in rows.items()
    for lookalike in lookalikes
}
_PAIRS = str.maketrans({"\u044e": "lo", "\u044b": "bl", "\u00e6": "ae", "\u0153": "oe", "\ua735": "ao"})
_STROKES_AND_CIRCLES = str.maketrans("i10", "llo")
_MERGED = {"l": "il1", "o": "o0"}
# Combining marks, and characters that show nothing: format, control, separators, unassigned.
_UNSEEN = frozenset({"Mn", "Me", "Cf", "Cc", "Cn", "Cs", "Zs", "Zl", "Zp"})
_BLANKS = frozenset(
    "\u115f\u1160\u2800"
)  # fillers and the empty Braille pattern, which Unicode counts as letters and symbols
# Wide characters that are a circle, a stroke or a dash all the same.
_WIDE_ROWS = {"o": "\u3007\u110b", "l": "\u4e28\u3021\u31d1", "-": "\u30fc\u4e00\u31d0\u301c\u3030\u30a0"}
_WIDE_LOOKALIKES = str.maketrans({wide: plain for plain, row in _WIDE_ROWS.items() for wide in row})
_HALF_WIDTH = "\u25a1"  # a narrow symbol that no table knows
_ANY = "\uffff"  # is no character, so no text that was read holds it


def folded(text: str) -> str:
    """Read compatibility forms and letter case as one (NFKC, case folding, and NFKC again for what folding brought up)."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def seen(text: str) -> str:
    """Leave out what shows nothing: blanks, line ends, invisible characters, combining marks."""
    return "".join(one for one in text if unicodedata.category(one) not in _UNSEEN and one not in _BLANKS)


def plain_letters(text: str) -> str:
    """Read look-alikes as the Latin letters they look like, without accents and unseen characters.

    ``i``, ``l`` and ``1`` become one, and so do ``o`` and ``0``: a foreign stroke or circle may stand for any of them. Meant for texts
    that are not ASCII throughout; in ASCII, ``pr0d`` is another word than ``prod``.
    """
    latin = unicodedata.normalize("NFD", folded(text.translate(_TABLE)).translate(_TABLE))
    # Folded once more: a small letter of some scripts becomes a capital of the table only here.
    plain = seen(latin).translate(_TABLE).casefold().translate(_WIDE_LOOKALIKES).translate(_PAIRS)
    return plain.translate(_STROKES_AND_CIRCLES)


def may_look_like(text: str, glob: str) -> bool:
    """Whether a text that is not all ASCII may look like one that the glob matches; what cannot be told for certain may."""
    # Compatibility makes a half-width character a wide one, but narrow is how it is seen.
    narrow = "".join(_HALF_WIDTH if _half_width(one) else one for one in text)
    read = "".join(one if one.isascii() or _wide(one) else _ANY for one in plain_letters(narrow))
    return fnmatchcase(read, "".join(_plain(piece) for piece in pieces(folded(glob))))


def _plain(piece: str) -> str:
    """Rewrite a piece of a glob so that it matches plain letters, and the character that stands for any."""
    if piece in {"*", "?"} or piece.startswith("[!"):
        return piece
    if is_set(piece):
        merged = (letter for letter, alike in _MERGED.items() if any(fnmatchcase(one, piece) for one in alike))
        return f"{piece[:-1]}{''.join(merged)}{_ANY}]"
    # The closing bracket is a member where it stands first, an exclamation mark where it does not.
    return "".join(f"[{one}{_ANY}]" if one == "]" else f"[{_ANY}{one}]" for one in plain_letters(piece))


def _wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in {"W", "F"}


def _half_width(character: str) -> bool:
    return unicodedata.east_asian_width(character) == "H" and bool(seen(folded(character)))
