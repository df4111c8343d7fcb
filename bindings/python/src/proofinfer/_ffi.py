"""The functions of proofinfer.h as ctypes sees them: one line a function, in the header's order."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, Tuple

# Handles, out-parameters and arrays: an int, a byref(), a bytes object, a ctypes array or None.
P = c_void_p

PROTOTYPES: Dict[str, Tuple[Any, Tuple[Any, ...]]] = {
    "version_number": (c_int32, ()),
    "version_text": (c_char_p, ()),
    "build_text": (c_char_p, ()),
    "status_name": (c_char_p, (c_int32,)),
    "error_code": (c_int32, (P,)),
    "error_message": (c_char_p, (P,)),
    "error_free": (None, (P,)),
    "options_create": (c_int32, (P, P)),
    "options_free": (None, (P,)),
    "options_set_i64": (c_int32, (P, P, c_size_t, c_int64, P)),
    "options_set_u64": (c_int32, (P, P, c_size_t, c_uint64, P)),
    "options_set_f64": (c_int32, (P, P, c_size_t, c_double, P)),
    "options_set_text": (c_int32, (P, P, c_size_t, P, c_size_t, P)),
    "options_set_tokens": (c_int32, (P, P, c_size_t, P, c_size_t, P)),
    "options_set_texts": (c_int32, (P, P, c_size_t, P, P, c_size_t, P)),
    "options_set_allocator": (c_int32, (P, P, P, P, P)),
    "option_count": (c_size_t, ()),
    "option_name": (c_char_p, (c_size_t,)),
    "option_type": (c_int32, (c_size_t,)),
    "option_default": (c_char_p, (c_size_t,)),
    "option_lowest": (c_char_p, (c_size_t,)),
    "option_highest": (c_char_p, (c_size_t,)),
    "option_scope": (c_char_p, (c_size_t,)),
    "cancel_create": (c_int32, (P, P)),
    "cancel_request": (None, (P,)),
    "cancel_reset": (None, (P,)),
    "cancel_requested": (c_int32, (P,)),
    "cancel_progress": (None, (P, P, P)),
    "cancel_free": (None, (P,)),
    "isa_count": (c_size_t, ()),
    "isa_name": (c_char_p, (c_size_t,)),
    "isa_available": (c_int32, (c_size_t,)),
    "selftest": (c_int32, (P,)),
    "model_open": (c_int32, (P, c_size_t, P, P, P, P)),
    "model_open_memory": (c_int32, (P, c_size_t, P, P, P, P)),
    "model_free": (None, (P,)),
    "model_get_i64": (c_int32, (P, c_int32, P, P)),
    "model_get_text": (c_char_p, (P, c_int32)),
    "model_tensor_count": (c_size_t, (P,)),
    "model_tensor_name": (c_int32, (P, c_size_t, P, c_size_t, P, P)),
    "model_tensor_get_i64": (c_int32, (P, c_size_t, c_int32, P, P)),
    "model_tensor_type": (c_char_p, (P, c_size_t)),
    "model_metadata_count": (c_size_t, (P,)),
    "model_metadata_key": (c_int32, (P, c_size_t, P, c_size_t, P, P)),
    "model_metadata_text": (c_int32, (P, c_size_t, P, c_size_t, P, P)),
    "convert": (c_int32, (P, c_size_t, P, c_size_t, c_int32, c_int32, P, P)),
    "tokenizer_open": (c_int32, (P, c_size_t, c_int32, P, P, P)),
    "tokenizer_open_memory": (c_int32, (P, c_size_t, c_int32, P, P, P)),
    "tokenizer_free": (None, (P,)),
    "tokenizer_vocab_size": (c_int32, (P,)),
    "tokenizer_bos": (c_int32, (P,)),
    "tokenizer_eos": (c_int32, (P,)),
    "tokenizer_get_i64": (c_int32, (P, c_int32, P, P)),
    "tokenizer_get_text": (c_char_p, (P, c_int32)),
    "tokenizer_piece": (c_int32, (P, c_int32, P, c_size_t, P, P, P)),
    "tokenizer_piece_kind": (c_int32, (P, c_int32, P, P)),
    "tokenizer_encode": (c_int32, (P, P, c_size_t, c_uint32, P, c_size_t, P, P)),
    "tokenizer_decode": (c_int32, (P, c_int32, c_int32, c_uint32, P, c_size_t, P, P)),
    "chat_template_count": (c_size_t, ()),
    "chat_template_name": (c_char_p, (c_size_t,)),
    "chat_template": (c_char_p, (P,)),
    "chat_encode": (c_int32, (P, P, c_size_t, P, P, P, c_size_t, c_uint32, P, c_size_t, P, P)),
    "chat_stop_tokens": (c_int32, (P, P, c_size_t, P, c_size_t, P, P)),
    "stream_create": (c_int32, (P, c_int32, P, P)),
    "stream_push": (c_int32, (P, c_int32, P, c_size_t, P, P)),
    "stream_flush": (c_int32, (P, P, c_size_t, P, P)),
    "stream_free": (None, (P,)),
    "session_create": (c_int32, (P, P, P, P)),
    "session_clone": (c_int32, (P, P, P, P)),
    "session_save": (c_int32, (P, P, c_size_t, P, P)),
    "session_restore": (c_int32, (P, P, c_size_t, P)),
    "session_free": (None, (P,)),
    "session_append": (c_int32, (P, P, c_size_t, c_int32, P, P)),
    "session_score": (c_int32, (P, P, c_size_t, P, P, P)),
    "model_score": (c_int32, (P, P, P, c_size_t, P, P, P, P)),
    "session_logits": (c_int32, (P, c_size_t, P, c_size_t, P, P)),
    "session_logits_view": (c_int32, (P, c_size_t, P, P, P)),
    "session_position": (c_size_t, (P,)),
    "session_context_length": (c_size_t, (P,)),
    "session_tokens": (c_int32, (P, P, c_size_t, P, P)),
    "session_rewind": (c_int32, (P, c_size_t, P)),
    "session_memory_bytes": (c_uint64, (P,)),
    "batch_create": (c_int32, (P, c_size_t, P, P, P)),
    "batch_add": (c_int32, (P, P, c_int32, c_int32, P)),
    "batch_evaluate": (c_int32, (P, P, P)),
    "batch_clear": (c_int32, (P, P)),
    "batch_free": (None, (P,)),
    "sampler_create": (c_int32, (c_int32, P, P, P)),
    "sampler_sample": (c_int32, (P, P, c_size_t, P, P)),
    "sampler_accept": (c_int32, (P, P, c_size_t, P)),
    "sampler_set_bias": (c_int32, (P, P, P, c_size_t, P)),
    "sampler_set_banned": (c_int32, (P, P, c_size_t, P)),
    "sampler_set_mask": (c_int32, (P, P, c_size_t, P)),
    "sampler_reseed": (c_int32, (P, c_uint64, P)),
    "sampler_free": (None, (P,)),
    "logits_logprobs": (c_int32, (P, c_size_t, P, c_size_t, P, P)),
    "logits_top": (c_int32, (P, c_size_t, c_size_t, P, P, P)),
    "generation_create": (c_int32, (P, P, P, P, c_size_t, P, P, P)),
    "generation_next": (c_int32, (P, P, P, P, c_size_t, P, P, P)),
    "generation_logprobs": (c_int32, (P, P, P, P, c_size_t, P, P)),
    "generation_stop_string": (c_int32, (P, P, P)),
    "generation_force": (c_int32, (P, c_int32, P)),
    "generation_free": (None, (P,)),
    "scheduler_create": (c_int32, (P, P, P, P, P)),
    "scheduler_submit": (c_int32, (P, P, c_size_t, P, P, P)),
    "scheduler_add": (c_int32, (P, P, P, P)),
    "scheduler_cancel": (c_int32, (P, c_uint64, P)),
    "scheduler_step": (c_int32, (P, P, P, P)),
    "scheduler_next": (c_int32, (P, c_uint64, P, P, P, c_size_t, P, P, P)),
    "scheduler_count": (c_size_t, (P,)),
    "scheduler_memory_bytes": (c_uint64, (P,)),
    "scheduler_free": (None, (P,)),
}

LOGITS = {"none": 0, "last": 1, "all": 2}
FORMATS = {"legacy": 0, "version 1": 1, "version 2": 2, "packed": 3}
ENCODE_BOS, ENCODE_EOS, ENCODE_SPECIAL = 1, 2, 4
DECODE_SPELLED = 1
ROLES = {"system": 1, "user": 2, "assistant": 3}
CHAT_ANSWER = 1
OPTION_TYPES = {1: "i64", 2: "u64", 3: "f64", 4: "text", 5: "tokens", 6: "texts"}


class Library:
    """The loaded library: `library.session_append` is proofinfer_session_append. Calls release the GIL.
    AttributeError where the file lacks a function.
    """

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self.name = name
        for function, (result, parameters) in PROTOTYPES.items():
            bound = getattr(library, "proofinfer_" + function)
            bound.restype = result
            bound.argtypes = parameters
            setattr(self, function, bound)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)
