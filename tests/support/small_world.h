// A model and a tokenizer small enough to be made in every test, with all 256 byte pieces and two KV heads. Immutable, any thread.
#ifndef PROOFINFER_TESTS_SUPPORT_SMALL_WORLD_H
#define PROOFINFER_TESTS_SUPPORT_SMALL_WORLD_H

#include <cstring>

#include "support/checkpoint.h"
#include "support/handles.h"

namespace proofinfer_test {

constexpr int32_t kSmallContext = 512;

inline std::vector<Piece> small_pieces() { return small_vocabulary({"a", "b", "ab", " a", " ab", "the", " the", "."}); }

inline Shape small_shape() { return {16, 24, 2, 4, 2, int32_t(small_pieces().size()), kSmallContext}; }

// Computed once: a test that changes the floating-point environment must not change the file.
inline const std::vector<uint8_t> &small_checkpoint() {
  static const std::vector<uint8_t> bytes = legacy_checkpoint(small_shape(), 7);
  return bytes;
}

// One NaN in the final norm makes every logit NaN.
inline std::vector<uint8_t> checkpoint_with_nan() {
  std::vector<uint8_t> bytes = small_checkpoint();
  for (const TensorPlace &place : legacy_places(small_shape()))
    if (place.name == "final_norm") {
      uint32_t nan = 0x7FC00000u;
      std::memcpy(&bytes[place.offset], &nan, 4);
    }
  return bytes;
}

struct SmallWorld {
  Model model;
  Tokenizer tokenizer;

  explicit SmallWorld(const proofinfer_options *options = nullptr)
      : model(open_model(small_checkpoint(), options)),
        tokenizer(open_tokenizer(tokenizer_file(small_pieces()), small_shape().vocab(), options)) {}
};

// `count` ids of the small vocabulary, BOS first.
inline std::vector<int32_t> small_tokens(size_t count) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < count; i++) tokens.push_back(i == 0 ? 1 : int32_t(3 + i * 37 % 264));
  return tokens;
}

inline Generation make_generation(const Session &session, const Tokenizer &tokenizer, const Sampler &sampler,
                                  const std::vector<int32_t> &prompt, const proofinfer_options *options = nullptr,
                                  Answer *answer = nullptr) {
  proofinfer_generation *made = nullptr;
  Answer got =
      answer_of(proofinfer_generation_create, session.get(), tokenizer.get(), sampler.get(), prompt.data(), prompt.size(), options, &made);
  EXPECT_EQ(made != nullptr, got.ok()) << got;
  if (answer)
    *answer = got;
  else
    EXPECT_TRUE(got.ok()) << got;
  return Generation(made);
}

}  // namespace proofinfer_test

#endif
