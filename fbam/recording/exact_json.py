"""JSON as bytes that gives back every Python string exactly.

Bytes of a history that are not UTF-8 are held as lone surrogates (``surrogateescape``). Plain JSON joins two escaped
surrogates into one character, and UTF-8 has no room for them; so strings are written unescaped, and encoded with
``surrogatepass``. Without surrogates the result is ordinary JSON in UTF-8. Same object, same bytes.
"""

import json
from typing import Any


def dumps(value: Any) -> bytes:
    """Return ``value`` as compact JSON with sorted keys.

    :raises ValueError: ``value`` holds something JSON cannot express
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    except TypeError as error:
        raise ValueError(f"cannot be written as JSON: {error}") from None
    return text.encode("utf-8", "surrogatepass")


def loads(data: bytes) -> Any:
    """Return the object that ``dumps`` wrote.

    :raises ValueError: ``data`` is not JSON
    """
    return json.loads(data.decode("utf-8", "surrogatepass"))
