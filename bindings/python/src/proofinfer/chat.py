"""Chat: message lists in the templates that models were trained with, and the answers to them."""

from __future__ import annotations

from array import array
from ctypes import byref, c_int32, c_size_t, c_void_p
from typing import Any, Iterable, List, Mapping, Optional, Tuple, Union

from . import _ffi
from ._handle import BUFFER, call, raise_error, text_bytes
from ._library import library
from .errors import ArgumentError
from .tokenizer import Tokenizer

Message = Union[Mapping[str, str], Tuple[str, str]]
"""One message: {"role": "user", "content": "Hello"} or ("user", "Hello"). Roles are "system", "user" and "assistant"."""


def chat_templates() -> Tuple[str, ...]:
    """The names of the chat templates that are known."""
    functions = library()
    return tuple(functions.chat_template_name(index).decode() for index in range(functions.chat_template_count()))


def chat_template(tokenizer: Tokenizer) -> Optional[str]:
    """The name of the chat template that the tokenizer's file carries; None if it has none, or none that is known."""
    name = library().chat_template(tokenizer._handle)
    return None if name is None else str(name.decode())


def encode_chat(
    tokenizer: Tokenizer, messages: Iterable[Message], *, template: Optional[str] = None, answer: bool = True
) -> List[int]:
    """Messages to token ids. What a message says stays text, whatever it spells.

    template: one of chat_templates(); default: the file's. answer: what the assistant's next message begins with stands
    at the end, so that the ids are a prompt for it. ArgumentError for a list that the template has no form for,
    UnsupportedError where the file has no template that is known.
    """
    roles, contents = array("i"), []
    for number, message in enumerate(messages):
        role, content = _parts(number, message)
        if role not in _ffi.ROLES:
            raise ArgumentError(f"message {number} has the role {role!r}; expected one of {', '.join(map(repr, _ffi.ROLES))}")
        roles.append(_ffi.ROLES[role])
        contents.append(text_bytes(content))
    name = _name(template)
    text = b"".join(contents)
    sizes = (c_size_t * len(contents))(*map(len, contents))
    flags = _ffi.CHAT_ANSWER if answer else 0
    # A guess at first: an id a byte, and what stands around each message.
    ids = array("i", bytes(4 * (len(text) + 64 * (len(contents) + 1))))
    for _ in range(2):
        needed, error = c_size_t(), c_void_p()
        status = library().chat_encode(
            tokenizer._handle,
            name,
            len(name),
            roles.buffer_info()[0],
            text,
            sizes,
            len(contents),
            flags,
            ids.buffer_info()[0],
            len(ids),
            byref(needed),
            byref(error),
        )
        if status != BUFFER:
            break
        library().error_free(error)
        ids = array("i", bytes(4 * needed.value))
    if status:
        raise_error(status, error)
    return ids[: needed.value].tolist()


def chat_stop_tokens(tokenizer: Tokenizer, template: Optional[str] = None) -> List[int]:
    """The ids that end the assistant's message."""
    name = _name(template)
    ids, needed = (c_int32 * 8)(), c_size_t()
    call(library().chat_stop_tokens, tokenizer._handle, name, len(name), ids, len(ids), byref(needed))
    return list(ids[: needed.value])


def _name(template: Optional[str]) -> bytes:
    return b"" if template is None else template.encode()


def _parts(number: int, message: Any) -> Tuple[str, Union[str, bytes]]:
    try:
        if isinstance(message, Mapping):
            return message["role"], message["content"]
        if not isinstance(message, (str, bytes)):
            role, content = message
            return role, content
    except (KeyError, TypeError, ValueError):
        pass
    raise ArgumentError(f'message {number} is {message!r}; expected {{"role": ..., "content": ...}} or (role, content)')
