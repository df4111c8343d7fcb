"""Models: weights and shape, shared by threads and sessions."""

from __future__ import annotations

import math
import os
from array import array
from ctypes import byref, c_int64, c_size_t
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

from . import _ffi, _interrupt
from ._cpython import Borrowed
from ._handle import Handle, Owner, call, create, make_options, path_bytes, read_bytes, token_array, token_id
from ._library import library
from .cancel import Cancel
from .errors import ArgumentError

if TYPE_CHECKING:
    from .session import Session

_INTEGERS = {
    "dim": 1,
    "hidden_dim": 2,
    "n_layers": 3,
    "n_heads": 4,
    "n_kv_heads": 5,
    "vocab_size": 6,
    "seq_len": 7,
    "head_size": 8,
    "shared_classifier": 9,
    "group_size": 10,
    "file_bytes": 11,
    "weight_bytes": 12,
    "memory_bytes": 13,
    "parameter_count": 14,
    "threads": 15,
    "is_mapped": 16,
}
_TEXTS = {"format": 1, "element_type": 2, "isa": 3}
_TENSOR = {"rows": 1, "columns": 2, "file_offset": 3, "file_bytes": 4, "is_quantized": 5}


class Tensor(NamedTuple):
    """One tensor of a checkpoint: a matrix of `rows` outputs and `columns` inputs; a vector has one row."""

    name: str
    rows: int
    columns: int
    file_offset: int
    file_bytes: int
    is_quantized: bool
    type: str


class Model(Owner):
    """A checkpoint in memory. Immutable; any number of threads and sessions may share it.

    path: the checkpoint. threads: threads that compute, the caller's included. isa: "auto" or a kernel set (the bits
    do not depend on it). memory_limit_bytes: most memory that the model may hold; 0: no limit. map: False reads a packed
    file into memory instead of mapping it; a mapped file must not be cut while it is in use. verify: True compares all
    weights of a packed file with its header. cancel: stops the loading and shows its progress in bytes.
    """

    __slots__ = ()

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        *,
        threads: Optional[int] = None,
        isa: Optional[str] = None,
        memory_limit_bytes: Optional[int] = None,
        map: Optional[bool] = None,  # noqa: A002  # the option's name
        verify: Optional[bool] = None,
        cancel: Optional[Cancel] = None,
    ) -> None:
        self._held = None
        name = path_bytes(path)
        options = make_options(threads=threads, isa=isa, memory_limit_bytes=memory_limit_bytes, map=map, verify=verify)
        self._held = _open(library().model_open, name, len(name), options, cancel)

    @classmethod
    def from_bytes(
        cls,
        data: Any,
        *,
        threads: Optional[int] = None,
        isa: Optional[str] = None,
        memory_limit_bytes: Optional[int] = None,
        cancel: Optional[Cancel] = None,
    ) -> "Model":
        """The same from a checkpoint's bytes: any object with the buffer protocol (bytes, bytearray, mmap, ...). It
        is copied.
        """
        options = make_options(threads=threads, isa=isa, memory_limit_bytes=memory_limit_bytes)
        model = cls.__new__(cls)
        model._held = None
        with Borrowed(data) as memory:
            model._held = _open(library().model_open_memory, memory.address, memory.size_bytes, options, cancel)
        return model

    def _get(self, name: str) -> int:
        value = c_int64()
        call(library().model_get_i64, self._handle, _INTEGERS[name], byref(value))
        return value.value

    def _text(self, name: str) -> str:
        return str(library().model_get_text(self._handle, _TEXTS[name]).decode())

    @property
    def dim(self) -> int:
        """The width of the residual stream."""
        return self._get("dim")

    @property
    def hidden_dim(self) -> int:
        """The width of the feed-forward part."""
        return self._get("hidden_dim")

    @property
    def n_layers(self) -> int:
        """The number of layers."""
        return self._get("n_layers")

    @property
    def n_heads(self) -> int:
        """The number of query heads."""
        return self._get("n_heads")

    @property
    def n_kv_heads(self) -> int:
        """The number of key and value heads."""
        return self._get("n_kv_heads")

    @property
    def head_size(self) -> int:
        """Dim / n_heads."""
        return self._get("head_size")

    @property
    def vocab_size(self) -> int:
        """The number of token ids."""
        return self._get("vocab_size")

    @property
    def seq_len(self) -> int:
        """The most positions that the model was made for."""
        return self._get("seq_len")

    @property
    def shared_classifier(self) -> bool:
        """Whether the classifier is the embedding."""
        return bool(self._get("shared_classifier"))

    @property
    def group_size(self) -> int:
        """Elements a quantization group; 0: not quantized."""
        return self._get("group_size")

    @property
    def file_bytes(self) -> int:
        """The size of the checkpoint."""
        return self._get("file_bytes")

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights in memory, padding included."""
        return self._get("weight_bytes")

    @property
    def memory_bytes(self) -> int:
        """All memory that the model holds."""
        return self._get("memory_bytes")

    @property
    def parameter_count(self) -> int:
        """Weights in the file, each counted once."""
        return self._get("parameter_count")

    @property
    def is_mapped(self) -> bool:
        """Whether the weights are a mapped packed file, shared with other processes, and not memory of the model's own."""
        return self._get("is_mapped") == 1

    @property
    def threads(self) -> int:
        """Threads that compute, the caller's included."""
        return self._get("threads")

    @property
    def format(self) -> str:
        """The checkpoint's format, for example "llama2.c legacy"."""
        return self._text("format")

    @property
    def element_type(self) -> str:
        """The weights' type: "f32" or "q8_0"."""
        return self._text("element_type")

    @property
    def isa(self) -> str:
        """The kernel set in use."""
        return self._text("isa")

    def properties(self) -> Dict[str, Union[int, str]]:
        """Every integer and text property by name."""
        values: Dict[str, Union[int, str]] = {name: self._get(name) for name in _INTEGERS}
        values.update({name: self._text(name) for name in _TEXTS})
        return values

    @property
    def tensors(self) -> Tuple[Tensor, ...]:
        """The checkpoint's tensors in file order."""
        return tuple(self._tensor(index) for index in range(library().model_tensor_count(self._handle)))

    def _tensor(self, index: int) -> Tensor:
        name = read_bytes(library().model_tensor_name, self._handle, index).decode()
        values = {}
        for key, number in _TENSOR.items():
            value = c_int64()
            call(library().model_tensor_get_i64, self._handle, index, number, byref(value))
            values[key] = value.value
        return Tensor(
            name,
            values["rows"],
            values["columns"],
            values["file_offset"],
            values["file_bytes"],
            bool(values["is_quantized"]),
            library().model_tensor_type(self._handle, index).decode(),
        )

    def score(
        self,
        texts: Iterable[Iterable[int]],
        *,
        isa: Optional[str] = None,
        memory_limit_bytes: Optional[int] = None,
        cancel: Optional[Cancel] = None,
    ) -> List[List[float]]:
        """The logarithms of the probabilities of the tokens of many texts, each from the beginning of a sequence: NaN for
        the first token, then each behind all before it. They are evaluated together, several in a pass, with the bits
        of each alone. See perplexity().

        cancel: stops it, and shows its progress in tokens. ContextError for a text longer than seq_len.
        """
        lists = [token_array(text) for text in texts]
        ids = array("i")
        for tokens in lists:
            ids.extend(tokens)
        counts = (c_size_t * len(lists))(*map(len, lists))
        values = array("f", bytes(4 * len(ids)))
        options = make_options(isa=isa, memory_limit_bytes=memory_limit_bytes)

        def work(polled: Optional[Cancel]) -> None:
            call(
                library().model_score,
                self._handle,
                ids.buffer_info()[0],
                counts,
                len(lists),
                options,
                values.buffer_info()[0],
                None if polled is None else polled._handle,
            )

        _interrupt.run(work, cancel)
        scores, begin = [], 0
        for tokens in lists:
            scores.append(values[begin : begin + len(tokens)].tolist())
            begin += len(tokens)
        return scores

    @property
    def metadata(self) -> Dict[str, str]:
        """The keys of a GGUF file and their values as text, long ones cut; empty for other formats."""
        native = library()
        pairs = range(native.model_metadata_count(self._handle))
        return {
            read_bytes(native.model_metadata_key, self._handle, i).decode(errors="replace"): read_bytes(
                native.model_metadata_text, self._handle, i
            ).decode(errors="replace")
            for i in pairs
        }

    def session(
        self,
        *,
        context_length: Optional[int] = None,
        isa: Optional[str] = None,
        memory_limit_bytes: Optional[int] = None,
    ) -> "Session":
        """A new session of this model: see Session."""
        from .session import Session

        return Session(self, context_length=context_length, isa=isa, memory_limit_bytes=memory_limit_bytes)


def _open(function: Any, data: Any, size_bytes: int, options: Optional[Handle], cancel: Optional[Cancel]) -> Handle:
    def work(polled: Optional[Cancel]) -> Handle:
        return create("model", function, data, size_bytes, options, None if polled is None else polled._handle)

    return _interrupt.run(work, cancel)


def perplexity(logprobs: Iterable[float]) -> float:
    """The exponential of minus the mean of the scores of a text; NaN among them (first tokens) does not count. NaN where
    nothing does.
    """
    scored = [value for value in logprobs if not math.isnan(value)]
    return math.exp(-math.fsum(scored) / len(scored)) if scored else math.nan


def convert(
    source: Union[str, "os.PathLike[str]"],
    destination: Union[str, "os.PathLike[str]"],
    format: str,  # noqa: A002  # the C parameter's name
    *,
    group_size: int = 0,
    cancel: Optional[Cancel] = None,
) -> None:
    """Writes a checkpoint in another format: "legacy", "version 1", "version 2" (Q8_0) or "packed" (weights as they lie
    in memory, to be mapped). The destination is whole or unchanged.

    group_size: for "version 2"; 0: the largest power of two up to 64 that divides dim and hidden_dim. cancel: stops it,
    and shows its progress in bytes written.
    """
    if format not in _ffi.FORMATS:
        raise ArgumentError(f"format is {format!r}; expected one of {', '.join(map(repr, _ffi.FORMATS))}")
    number, group = _ffi.FORMATS[format], token_id("group_size", group_size)
    old, new = path_bytes(source), path_bytes(destination)

    def work(polled: Optional[Cancel]) -> None:
        call(library().convert, old, len(old), new, len(new), number, group, None if polled is None else polled._handle)

    _interrupt.run(work, cancel)
