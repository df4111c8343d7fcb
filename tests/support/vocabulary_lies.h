// Files that lie about their vocabulary, one defect each, named for it; what the library must say. As thread-safe as the strings they are made of.
#ifndef PROOFINFER_TESTS_SUPPORT_VOCABULARY_LIES_H
#define PROOFINFER_TESTS_SUPPORT_VOCABULARY_LIES_H

#include <cmath>
#include <functional>

#include "support/vocabulary.h"

namespace proofinfer_test {

enum class Refused { kFormat, kUnsupported };

struct VocabularyLie {
  const char *name;
  Refused how;
  std::string message;  // part of it
  std::function<void(GgufFile *)> tell;
};

// The file that they change: 257 pieces, one rule.
inline GgufFile honest_file() {
  RuleVocabulary vocabulary;
  vocabulary.rules = {{"a", "b"}};
  return rule_file(vocabulary);
}

template <typename Value>
std::function<void(GgufFile *)> say(const std::string &key, Value value) {
  return [=](GgufFile *file) { file->remove_key(key), file->add(key, value); };
}

template <typename Value>
std::function<void(GgufFile *)> list(const std::string &key, uint32_t type, std::vector<Value> values) {
  return [=](GgufFile *file) { file->remove_key(key), file->add_array(key, type, values); };
}

inline std::vector<VocabularyLie> vocabulary_lies() {
  const std::vector<int32_t> types(257, kNormal);
  auto with = [](auto values, size_t at, auto value) { return values[at] = value, values; };
  const std::string tokens = "tokenizer.ggml.tokens", merges = "tokenizer.ggml.merges", kinds = "tokenizer.ggml.token_type";
  const std::string scores = "tokenizer.ggml.scores";
  return {
      {"no model", Refused::kFormat, "GGUF: key tokenizer.ggml.model is missing; expected one of type ",
       [](GgufFile *file) { file->remove_key("tokenizer.ggml.model"); }},
      {"another model", Refused::kUnsupported, "key 'tokenizer.ggml.model': found \"bert\"; supported are \"llama\" and \"gpt2\"",
       say("tokenizer.ggml.model", "bert")},
      {"a long model", Refused::kUnsupported, "found \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"; supported",
       say("tokenizer.ggml.model", std::string(1000, 'x'))},
      {"a model behind whose name a NUL stands", Refused::kUnsupported, "found \"gpt2?x\"; supported",
       say("tokenizer.ggml.model", std::string("gpt2\0x", 6))},
      {"a model that is a number", Refused::kFormat, "GGUF: key tokenizer.ggml.model at offset ", say("tokenizer.ggml.model", 5u)},
      {"another pre-tokenizer", Refused::kUnsupported,
       "key 'tokenizer.ggml.pre': found \"tekken\"; supported are default, llama-bpe, llama3, llama-v3, falcon3, ",
       say("tokenizer.ggml.pre", "tekken")},
      {"a pre-tokenizer behind whose name a NUL stands", Refused::kUnsupported, "found \"gpt-2?\"; supported",
       say("tokenizer.ggml.pre", std::string("gpt-2\0", 6))},
      {"a pre-tokenizer that is a number", Refused::kFormat, "GGUF: key tokenizer.ggml.pre at offset ", say("tokenizer.ggml.pre", 5u)},
      {"no pieces", Refused::kFormat, "key 'tokenizer.ggml.tokens': found 0 pieces; expected 1 to 2147483647",
       say(tokens, std::vector<std::string>())},
      {"no list of pieces", Refused::kFormat, "GGUF: key tokenizer.ggml.tokens is missing",
       [=](GgufFile *file) { file->remove_key(tokens); }},
      {"pieces that are numbers", Refused::kFormat, "expected an array of ", list<int32_t>(tokens, kI32, {1, 2})},
      {"too few scores", Refused::kFormat,
       "key 'tokenizer.ggml.scores': found 256 elements; expected 257, one for each of 'tokenizer.ggml.tokens'",
       list(scores, kF32, std::vector<float>(256))},
      {"scores that are numbers of another type", Refused::kFormat, "GGUF: key tokenizer.ggml.scores at offset ",
       list(scores, kI32, std::vector<int32_t>(257))},
      {"a score that is NaN", Refused::kFormat, "key 'tokenizer.ggml.scores': piece 7: expected a finite score, found NaN",
       list(scores, kF32, with(std::vector<float>(257), 7, NAN))},
      {"a score that is infinite", Refused::kFormat, "key 'tokenizer.ggml.scores': piece 256: expected a finite score, found infinity",
       list(scores, kF32, with(std::vector<float>(257), 256, -INFINITY))},
      {"too many types", Refused::kFormat, "key 'tokenizer.ggml.token_type': found 258 elements; expected 257",
       list(kinds, kI32, std::vector<int32_t>(258, kNormal))},
      {"types of another type", Refused::kFormat, "GGUF: key tokenizer.ggml.token_type at offset ",
       list(kinds, kF32, std::vector<float>(257))},
      {"type 0", Refused::kFormat, "key 'tokenizer.ggml.token_type': piece 3: expected a type of 1 to 6, found 0",
       list(kinds, kI32, with(types, 3, 0))},
      {"type 7", Refused::kFormat, "piece 3: expected a type of 1 to 6, found 7", list(kinds, kI32, with(types, 3, 7))},
      {"type -1", Refused::kFormat, "piece 3: expected a type of 1 to 6, found -1", list(kinds, kI32, with(types, 3, -1))},
      {"no merges", Refused::kFormat, "GGUF: key tokenizer.ggml.merges is missing", [=](GgufFile *file) { file->remove_key(merges); }},
      {"a merge without a space", Refused::kFormat,
       "key 'tokenizer.ggml.merges': merge 1 is \"ab\"; expected two pieces with a space between them",
       say(merges, std::vector<std::string>{"a b", "ab"})},
      {"a merge of nothing and a piece", Refused::kFormat, "merge 0 is \" ab\"; expected two pieces",
       say(merges, std::vector<std::string>{" ab"})},
      {"a merge of a piece and nothing", Refused::kFormat, "merge 0 is \"ab \"; expected two pieces",
       say(merges, std::vector<std::string>{"ab "})},
      {"an empty merge", Refused::kFormat, "merge 0 is \"\"; expected two pieces", say(merges, std::vector<std::string>{""})},
      {"a merge of what is no piece", Refused::kFormat,
       "merge 0 makes \"abb\" of 2 and 1 bytes; expected all three to be pieces, the whole is none",
       say(merges, std::vector<std::string>{"ab b"})},
      {"a merge whose first is no piece", Refused::kFormat, "expected all three to be pieces, the first is none",
       say(merges, std::vector<std::string>{"xx b"})},
      {"a merge whose second is no piece", Refused::kFormat, "expected all three to be pieces, the second is none",
       say(merges, std::vector<std::string>{"x bb"})},
      {"a merge longer than pieces can be", Refused::kFormat, "merge 0 has 1000 bytes; expected two pieces, which have 5 at most",
       say(merges, std::vector<std::string>{std::string(1000, 'x')})},
      {"a BOS that is no piece", Refused::kFormat, "key 'tokenizer.ggml.bos_token_id': found id 257; expected one of the 257 pieces",
       say("tokenizer.ggml.bos_token_id", 257u)},
      {"a padding that is no piece", Refused::kFormat,
       "key 'tokenizer.ggml.padding_token_id': found id 4294967295; expected one of the 257 pieces",
       say("tokenizer.ggml.padding_token_id", 4294967295u)},
      {"an EOS that is a text", Refused::kFormat, "GGUF: key tokenizer.ggml.eos_token_id at offset ",
       say("tokenizer.ggml.eos_token_id", "2")},
      {"BOS asked for and not named", Refused::kFormat, "key 'tokenizer.ggml.add_bos_token' is true and no key says which id that is",
       say("tokenizer.ggml.add_bos_token", true)},
      {"EOS asked for and not named", Refused::kFormat, "key 'tokenizer.ggml.add_eos_token' is true and no key says which id that is",
       say("tokenizer.ggml.add_eos_token", true)},
      {"EOS asked for and not named, BOS asked for and named", Refused::kFormat,
       "key 'tokenizer.ggml.add_eos_token' is true and no key says which id that is",
       [](GgufFile *file) {
         file->add("tokenizer.ggml.bos_token_id", 1u);
         file->add("tokenizer.ggml.add_bos_token", true), file->add("tokenizer.ggml.add_eos_token", true);
       }},
      {"a flag that is a number", Refused::kFormat, "GGUF: key tokenizer.ggml.add_bos_token at offset ",
       say("tokenizer.ggml.add_bos_token", 1u)},
      {"another flag that is a number", Refused::kFormat, "GGUF: key tokenizer.ggml.add_eos_token at offset ",
       say("tokenizer.ggml.add_eos_token", 1u)},
      {"a prefix that is a number", Refused::kFormat, "GGUF: key tokenizer.ggml.add_space_prefix at offset ",
       say("tokenizer.ggml.add_space_prefix", 1u)},
      {"a template that is a number", Refused::kFormat, "GGUF: key tokenizer.chat_template at offset ", say("tokenizer.chat_template", 1u)},
      {"no GGUF any more", Refused::kUnsupported, "GGUF", [](GgufFile *file) { file->version = 9; }},
  };
}

}  // namespace proofinfer_test

#endif
