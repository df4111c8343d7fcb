// Ways in which a GGUF file of the architecture `llama` lies, one each, with what the library says. Immutable.
#ifndef PROOFINFER_TESTS_SUPPORT_GGUF_LIES_H
#define PROOFINFER_TESTS_SUPPORT_GGUF_LIES_H

#include <proofinfer.h>

#include <algorithm>
#include <functional>

#include "support/gguf_model.h"

namespace proofinfer_test {

struct GgufLie {
  int32_t status;
  std::string says;  // a part of the message
  std::function<void(GgufFile *)> tell;
};

// Told of a file of toy_gguf with two heads of four elements, one kv head, 32 columns, hidden_dim 3, six tokens, one layer, a classifier.
inline std::vector<GgufLie> gguf_lies() {
  std::vector<GgufLie> lies;
  auto add = [&lies](int32_t status, const std::string &says, std::function<void(GgufFile *)> tell) {
    lies.push_back({status, says, std::move(tell)});
  };
  auto add_u32 = [&add](int32_t status, const std::string &says, const char *name, uint32_t value) {
    add(status, says, [name, value](GgufFile *file) {
      file->remove_key(name);
      file->add(name, value);
    });
  };
  auto add_f32 = [&add](int32_t status, const std::string &says, const char *name, float value) {
    add(status, says, [name, value](GgufFile *file) {
      file->remove_key(name);
      file->add(name, value);
    });
  };
  auto add_text = [&add](int32_t status, const std::string &says, const char *name, const std::string &value) {
    add(status, says, [name, value](GgufFile *file) {
      file->remove_key(name);
      file->add(name, value);
    });
  };
  constexpr int32_t kFormat = PROOFINFER_E_FORMAT, kUnsupported = PROOFINFER_E_UNSUPPORTED;
  add_text(kUnsupported, "is \"qwen2\"; expected \"llama\", the one architecture that is supported", "general.architecture", "qwen2");
  add_text(kUnsupported, "is \"llama4\"; expected \"llama\"", "general.architecture", "llama4");
  // Names end where the file says, not at a NUL.
  add_text(kUnsupported, "is \"llama?\"; expected \"llama\"", "general.architecture", std::string("llama\0", 6));
  for (const char *type : {"none", "linear", "llama3"})
    add_text(kUnsupported, std::string("is \"") + type + "?x\"; expected \"none\"", "llama.rope.scaling.type",
             std::string(type) + '\0' + 'x');
  add_u32(kFormat, "key general.architecture", "general.architecture", 1);
  for (const char *name : {"general.architecture", "llama.block_count", "llama.context_length", "llama.embedding_length",
                           "llama.feed_forward_length", "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"})
    add(kFormat, std::string("key ") + name + " is missing", [name](GgufFile *file) { file->remove_key(name); });
  for (const char *name : {"llama.block_count", "llama.context_length", "llama.embedding_length", "llama.feed_forward_length",
                           "llama.attention.head_count", "llama.attention.head_count_kv"}) {
    add_u32(kFormat, "is 0; expected 1 to 2147483647", name, 0);
    add_u32(kFormat, "is 4294967295; expected 1 to 2147483647", name, ~0u);
    add_text(kFormat, "is string; expected an unsigned integer", name, "2");
  }
  add_u32(kFormat, "tensor blk.1.attn_norm.weight is missing", "llama.block_count", 2);
  add_u32(kFormat, "key llama.block_count is 1000000", "llama.block_count", 1000000);
  add_u32(kFormat, "is 5; expected a divisor of the heads, which are 2", "llama.attention.head_count_kv", 5);
  add_u32(kFormat, "tensor token_embd.weight has 6 rows of 32 columns; expected 6 of 31", "llama.embedding_length", 31);
  add_u32(kFormat, "tensor blk.0.ffn_gate.weight has 3 rows of 32 columns; expected 4 of 32", "llama.feed_forward_length", 4);
  add(kFormat, "is 3; expected a divisor of the embedding_length, which is 32", [](GgufFile *file) {
    for (const char *name :
         {"llama.attention.key_length", "llama.attention.value_length", "llama.attention.head_count", "llama.attention.head_count_kv"})
      file->remove_key(name);
    file->add("llama.attention.head_count", 3u);
  });
  add_u32(kUnsupported, "is 6; expected that of the keys, which is 4", "llama.attention.value_length", 6);
  add(kFormat, "the size of a head is 3; expected an even number", [](GgufFile *file) {
    for (const char *name : {"llama.attention.key_length", "llama.attention.value_length"}) file->key(name)->value = {3, 0, 0, 0};
  });
  add(kFormat, "2 heads of 2147483646 elements are more than 2147483647", [](GgufFile *file) {
    for (const char *name : {"llama.attention.key_length", "llama.attention.value_length"})
      file->key(name)->value = {0xfe, 0xff, 0xff, 0x7f};
  });
  for (float bad : {0.0f, -1.0f, __builtin_inff(), __builtin_nanf(""), 1e-40f}) {
    const std::string says = std::string("is ") +
                             (bad != bad     ? "NaN"
                              : bad < 0      ? "negative"
                              : bad == 0     ? "0"
                              : bad < 1e-39f ? "subnormal"
                                             : "infinite") +
                             "; expected a positive number";
    add_f32(kFormat, says, "llama.rope.freq_base", bad);
    add_f32(kFormat, says, "llama.rope.scaling.factor", bad);
    for (size_t i = 0; i < 2; i++)
      add(kFormat, says, [bad, i](GgufFile *file) {
        Bytes bits;
        put(&bits, bad);
        std::copy(bits.begin(), bits.end(), file->tensor("rope_freqs.weight")->data.begin() + std::ptrdiff_t(4 * i));
      });
  }
  add(kFormat, "tensor rope_freqs.weight: number 1, at offset", [](GgufFile *file) {
    Bytes &factors = file->tensor("rope_freqs.weight")->data;
    std::fill(factors.begin() + 4, factors.end(), uint8_t(0));
  });
  for (float bad : {-1e-5f, __builtin_inff(), __builtin_nanf("")})
    add_f32(kFormat, "is negative or not finite; expected a number from 0", "llama.attention.layer_norm_rms_epsilon", bad);
  add_u32(kUnsupported, "is 2; expected the size of a head, which is 4", "llama.rope.dimension_count", 2);
  for (const char *type : {"yarn", "longrope", "dynamic", "", "Linear"})
    add_text(kUnsupported, "expected \"none\", \"linear\" or \"llama3\"", "llama.rope.scaling.type", type);
  add(kFormat, "is llama3 and there is no tensor rope_freqs.weight", [](GgufFile *file) {
    file->remove_key("llama.rope.scaling.type");
    file->add("llama.rope.scaling.type", "llama3");
    file->remove_tensor("rope_freqs.weight");
  });
  for (const char *name : {"llama.expert_count", "llama.expert_used_count"}) add_u32(kUnsupported, "is 8; expected no such key", name, 8);
  for (const char *name : {"llama.attention.scale", "llama.logit_scale", "llama.final_logit_softcapping", "llama.attention.clamp_kqv"})
    add_f32(kUnsupported, "is set; expected no such key", name, 0.5f);
  add(kUnsupported, "key llama.attention.causal", [](GgufFile *file) { file->add("llama.attention.causal", false); });
  add_u32(kFormat, "is 7; expected at most the rows of token_embd.weight, which are 6", "llama.vocab_size", 7);
  add(kFormat, "is an array of 7; expected at most the rows of token_embd.weight, which are 6",
      [](GgufFile *file) { file->add("tokenizer.ggml.tokens", std::vector<std::string>(7, "t")); });
  for (const char *name : {"token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight", "blk.0.ffn_down.weight"})
    add(kFormat, std::string("tensor ") + name + " is missing", [name](GgufFile *file) { file->remove_tensor(name); });
  for (const char *name : {"blk.0.attn_q.bias", "blk.0.ffn_gate_exps.weight", "blk.1.attn_norm.weight", "rope_factors_long.weight", "x"})
    add(kUnsupported, std::string("tensor ") + name + ", described at offset",
        [name](GgufFile *file) { file->add_tensor(name, {8}, 0, Bytes(32)); });
  add(kUnsupported, "has the element type Q8_0; expected F32, F16 or BF16 for a norm", [](GgufFile *file) {
    file->tensor("output_norm.weight")->type = 8;
    file->tensor("output_norm.weight")->data.resize(34);
  });
  add(kFormat, "tensor rope_freqs.weight has 1 rows of 3 columns of the type F32; expected 1 of 2 of F32", [](GgufFile *file) {
    file->tensor("rope_freqs.weight")->dims = {3};
    file->tensor("rope_freqs.weight")->data.resize(12);
  });
  for (uint32_t count : {1u, 2u})
    add(kFormat,
        count == 1 ? "an array whose number 0 is 0; expected 1 to 2147483647"
                   : "is an array of 2 numbers; expected as many as there are layers, 1",
        [count](GgufFile *file) {
          file->remove_key("llama.feed_forward_length");
          file->add_array("llama.feed_forward_length", kU32, std::vector<uint32_t>(count, 0));
        });
  for (const char *name : {"llama.rope.freq_base", "llama.rope.scale_linear", "llama.rope.scaling.factor", "llama.rope.scaling.type",
                           "llama.rope.dimension_count", "llama.vocab_size", "tokenizer.ggml.tokens", "llama.attention.sliding_window",
                           "llama.attention.value_length", "llama.attention.causal", "llama.expert_count", "llama.logit_scale"})
    add(kFormat, std::string("key ") + name, [name](GgufFile *file) {
      file->remove_key(name);
      file->add_array(name, kU8, std::vector<uint8_t>{1});
    });
  add(kFormat, "is an array of another type; expected a number, or an array of u32 or i32", [](GgufFile *file) {
    file->remove_key("llama.attention.head_count");
    file->add_array("llama.attention.head_count", kU64, std::vector<uint64_t>{2});
  });
  add(kFormat, "is an array whose number 0 is -2; expected 1 to 2147483647", [](GgufFile *file) {
    file->remove_key("llama.attention.head_count");
    file->add_array("llama.attention.head_count", kI32, std::vector<int32_t>{-2});
  });
  add(kFormat, "tensor rope_freqs.weight has 1 rows of 2 columns of the type F16; expected 1 of 2 of F32", [](GgufFile *file) {
    file->tensor("rope_freqs.weight")->type = 1;
    file->tensor("rope_freqs.weight")->data.resize(4);
  });
  add(kFormat, "tensor rope_freqs.weight has 2 rows of 2 columns of the type F32; expected 1 of 2 of F32", [](GgufFile *file) {
    file->tensor("rope_freqs.weight")->dims = {2, 2};
    file->tensor("rope_freqs.weight")->data.resize(16);
  });
  return lies;
}

}  // namespace proofinfer_test

#endif
