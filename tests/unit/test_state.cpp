// Saved states: every truncation, changed byte and foreign model is refused with the session as it was; the rest goes on with the same bits.
#include <gtest/gtest.h>

#include <cstring>

#include "base/checksum.h"
#include "support/files.h"
#include "support/small_world.h"

namespace proofinfer_test {

namespace {

// Small, so that every byte of a state can be tried.
constexpr Shape kShape = {4, 6, 2, 2, 1, 9, 80};
constexpr size_t kHeaderBytes = 72;

std::vector<uint8_t> save(const Session &session) {
  size_t needed = 0;
  EXPECT_EQ(answer_of(proofinfer_session_save, session.get(), nullptr, size_t(0), &needed).status, PROOFINFER_E_BUFFER);
  std::vector<uint8_t> bytes(needed);
  Answer answer = answer_of(proofinfer_session_save, session.get(), bytes.data(), bytes.size(), &needed);
  EXPECT_TRUE(answer.ok()) << answer;
  EXPECT_EQ(needed, bytes.size());
  return bytes;
}

// From memory of exactly that size, so that a read behind the end is noticed by the tools that notice such reads.
Answer restore(const Session &session, const std::vector<uint8_t> &bytes) {
  std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), exact.get());
  return answer_of(proofinfer_session_restore, session.get(), exact.get(), bytes.size());
}

void put_checksum(std::vector<uint8_t> *state) {
  uint64_t sum = proofinfer::checksum_of(state->data(), state->size() - 8);
  for (size_t i = 0; i < 8; i++) (*state)[state->size() - 8 + i] = uint8_t(sum >> 8 * i);
}

void put_word(std::vector<uint8_t> *state, size_t offset, uint32_t value) {
  for (size_t i = 0; i < 4; i++) (*state)[offset + i] = uint8_t(value >> 8 * i);
}

// A session that holds something, and what must still be true of it after a failure.
struct Victim {
  Model model;
  Session session;
  std::vector<uint8_t> before;
  std::vector<float> next;

  explicit Victim(const std::vector<uint8_t> &file = legacy_checkpoint(kShape, 1)) : model(open_model(file)) {
    session = make_session(model);
    EXPECT_TRUE(append(session, {1, 5, 6, 7}, PROOFINFER_LOGITS_LAST).ok());
    before = save(session);
    Session other = make_session(model);
    EXPECT_TRUE(append(other, {1, 5, 6, 7, 8}, PROOFINFER_LOGITS_LAST).ok());
    next = logits(other, 4);
  }
  void expect_unchanged() {
    ASSERT_EQ(save(session), before);
    ASSERT_TRUE(append(session, {8}, PROOFINFER_LOGITS_LAST).ok());
    ASSERT_EQ(logits(session, 4), next);
    ASSERT_TRUE(answer_of(proofinfer_session_rewind, session.get(), size_t(3)).ok());
    ASSERT_TRUE(append(session, {7}, PROOFINFER_LOGITS_LAST).ok());
  }
};

std::vector<uint8_t> some_state(const Model &model) {
  Session session = make_session(model);
  EXPECT_TRUE(append(session, {1, 2, 3}, PROOFINFER_LOGITS_LAST).ok());
  return save(session);
}

}  // namespace

TEST(State, a_restored_session_goes_on_with_the_same_bits_and_logits) {
  for (Format format : kFormats) {
    const Model model = open_model(checkpoint(format, kShape, 1, 2)), again = open_model(checkpoint(format, kShape, 1, 2));
    for (size_t count : {1, 15, 16, 17, 63, 64, 65, 79}) {
      std::vector<int32_t> tokens;
      for (size_t i = 0; i < count; i++) tokens.push_back(int32_t(i * 5 % 9));
      Session session = make_session(model), other = make_session(again);
      ASSERT_TRUE(append(session, tokens, PROOFINFER_LOGITS_LAST).ok());
      const std::vector<uint8_t> state = save(session);
      ASSERT_TRUE(restore(other, state).ok());
      EXPECT_EQ(proofinfer_session_position(other.get()), count);
      EXPECT_EQ(logits(other, count - 1), logits(session, count - 1));
      EXPECT_EQ(save(other), state);
      ASSERT_TRUE(append(session, {4}, PROOFINFER_LOGITS_LAST).ok());
      ASSERT_TRUE(append(other, {4}, PROOFINFER_LOGITS_LAST).ok());
      EXPECT_EQ(logits(other, count), logits(session, count));
    }
  }
}

TEST(State, the_same_weights_from_a_file_of_another_format_take_it) {
  const Model legacy = open_model(legacy_checkpoint(kShape, 1)), version1 = open_model(version1_checkpoint(kShape, 1));
  Session session = make_session(version1);
  Answer answer = restore(session, some_state(legacy));
  EXPECT_TRUE(answer.ok()) << answer;
  EXPECT_EQ(save(session), some_state(version1));
}

TEST(State, states_that_are_equal_are_equal_bytes_however_they_came_about) {
  const Model model = open_model(legacy_checkpoint(kShape, 1));
  Session session = make_session(model);
  ASSERT_TRUE(append(session, std::vector<int32_t>(79, 8), PROOFINFER_LOGITS_ALL).ok());
  ASSERT_TRUE(answer_of(proofinfer_session_rewind, session.get(), size_t(0)).ok());
  for (int32_t token : {1, 2, 3}) ASSERT_TRUE(append(session, {token}, PROOFINFER_LOGITS_ALL).ok());
  EXPECT_EQ(save(session), some_state(model));
}

TEST(State, an_empty_session_is_saved_in_80_bytes_and_restored) {
  Victim victim;
  Session empty = make_session(victim.model);
  const std::vector<uint8_t> state = save(empty);
  EXPECT_EQ(state.size(), 80u);
  ASSERT_TRUE(restore(victim.session, state).ok());
  EXPECT_EQ(proofinfer_session_position(victim.session.get()), 0u);
  EXPECT_EQ(save(victim.session), state);
  ASSERT_TRUE(restore(victim.session, victim.before).ok());
  victim.expect_unchanged();
}

TEST(State, every_truncation_is_refused_and_changes_nothing) {
  Victim victim;
  const std::vector<uint8_t> state = some_state(victim.model);
  for (size_t length = 0; length < state.size(); length++) {
    SCOPED_TRACE(length);
    Answer answer = restore(victim.session, {state.begin(), state.begin() + std::ptrdiff_t(length)});
    EXPECT_EQ(answer.status, PROOFINFER_E_TRUNCATED) << answer;
    ASSERT_NO_FATAL_FAILURE(victim.expect_unchanged());
  }
  std::vector<uint8_t> longer = state;
  longer.push_back(0);
  EXPECT_EQ(restore(victim.session, longer).status, PROOFINFER_E_FORMAT);
  victim.expect_unchanged();
}

TEST(State, every_changed_byte_is_refused_and_changes_nothing) {
  Victim victim;
  const std::vector<uint8_t> state = some_state(victim.model);
  for (size_t at = 0; at < state.size(); at++)
    for (int flip : {0x01, 0x80, 0xFF}) {
      SCOPED_TRACE(std::to_string(at) + " ^ " + std::to_string(flip));
      std::vector<uint8_t> changed = state;
      changed[at] ^= uint8_t(flip);
      Answer answer = restore(victim.session, changed);
      EXPECT_FALSE(answer.ok());
      EXPECT_EQ(answer.status, at < 7    ? PROOFINFER_E_UNRECOGNIZED
                               : at == 7 ? PROOFINFER_E_UNSUPPORTED
                               : at < 16 ? (changed[8 + (at - 8)] > state[at] ? PROOFINFER_E_TRUNCATED : PROOFINFER_E_FORMAT)
                                         : PROOFINFER_E_FORMAT)
          << answer;
      ASSERT_NO_FATAL_FAILURE(victim.expect_unchanged());
    }
}

// With the checksum made right again: what a state says is checked for itself.
TEST(State, every_header_byte_changed_under_a_right_checksum_is_refused_by_name) {
  Victim victim;
  const std::vector<uint8_t> state = some_state(victim.model);
  for (size_t at = 8; at < kHeaderBytes; at++)
    for (int flip : {0x01, 0x02, 0x80, 0xFF}) {
      SCOPED_TRACE(std::to_string(at) + " ^ " + std::to_string(flip));
      std::vector<uint8_t> changed = state;
      changed[at] ^= uint8_t(flip);
      put_checksum(&changed);
      Answer answer = restore(victim.session, changed);
      EXPECT_FALSE(answer.ok());
      ASSERT_NO_FATAL_FAILURE(victim.expect_unchanged());
    }
}

TEST(State, lies_under_a_right_checksum_are_named) {
  Victim victim;
  const std::vector<uint8_t> state = some_state(victim.model);
  struct Lie {
    size_t offset;
    uint32_t value;
    int32_t status;
    const char *says;
  };
  const size_t tokens = kHeaderBytes, logits_at = tokens + 3 * 4, kv = logits_at + 9 * 4;
  for (const Lie &lie :
       {Lie{16, 4, PROOFINFER_E_FORMAT, "position"}, Lie{20, 0x80000000u, PROOFINFER_E_FORMAT, "position"},
        Lie{60, 2, PROOFINFER_E_FORMAT, "logits flag"}, Lie{60, 0, PROOFINFER_E_FORMAT, "position"},
        Lie{24, 8, PROOFINFER_E_ARGUMENT, "its dim is 8, the session's model has 4"}, Lie{64, 0, PROOFINFER_E_ARGUMENT, "other weights"},
        Lie{tokens + 4, 9, PROOFINFER_E_FORMAT, "token 1 is 9; expected 0 to 8"},
        Lie{tokens, 0xFFFFFFFFu, PROOFINFER_E_FORMAT, "token 0 is -1"},
        Lie{logits_at + 8, 0x7fc00001u, PROOFINFER_E_FORMAT, "value 2 of the logits is the NaN 7fc00001"},
        Lie{kv, 0xffc00000u, PROOFINFER_E_FORMAT, "value 0 of the keys and values is the NaN ffc00000"}}) {
    SCOPED_TRACE(lie.says);
    std::vector<uint8_t> changed = state;
    put_word(&changed, lie.offset, lie.value);
    put_checksum(&changed);
    Answer answer = restore(victim.session, changed);
    EXPECT_EQ(answer.status, lie.status) << answer;
    EXPECT_TRUE(answer.says(lie.says)) << answer;
    victim.expect_unchanged();
  }
  // An empty state that claims logits.
  std::vector<uint8_t> empty = save(make_session(victim.model));
  put_word(&empty, 60, 1);
  put_checksum(&empty);
  EXPECT_EQ(restore(victim.session, empty).status, PROOFINFER_E_FORMAT);
}

TEST(State, any_numbers_under_a_right_checksum_are_computed_with) {
  Victim victim;
  std::vector<uint8_t> state = some_state(victim.model);
  const size_t kv = kHeaderBytes + 3 * 4 + 9 * 4;
  for (uint32_t bits : {0x7fc00000u, 0x7f800000u, 0xff800000u, 0x7f7fffffu, 1u}) {
    for (size_t at = kv; at + 8 < state.size(); at += 8) put_word(&state, at, bits);
    put_checksum(&state);
    ASSERT_TRUE(restore(victim.session, state).ok());
    EXPECT_EQ(save(victim.session), state);
    EXPECT_TRUE(append(victim.session, {4, 5}).ok());
  }
}

TEST(State, the_state_of_another_model_is_refused_by_what_differs) {
  Victim victim;
  struct Other {
    Shape shape;
    uint64_t seed;
    const char *differs;
  };
  for (const Other &other : {Other{{8, 6, 2, 2, 1, 9, 80}, 1, "dim"}, Other{{4, 7, 2, 2, 1, 9, 80}, 1, "hidden_dim"},
                             Other{{4, 6, 1, 2, 1, 9, 80}, 1, "n_layers"}, Other{{4, 6, 2, 1, 1, 9, 80}, 1, "n_heads"},
                             Other{{4, 6, 2, 2, 2, 9, 80}, 1, "n_kv_heads"}, Other{{4, 6, 2, 2, 1, 10, 80}, 1, "vocab_size"},
                             Other{{4, 6, 2, 2, 1, 9, 81}, 1, "seq_len"}, Other{{4, 6, 2, 2, 1, -9, 80}, 1, "shared_classifier"},
                             Other{kShape, 2, "other weights"}}) {
    SCOPED_TRACE(other.differs);
    Answer answer = restore(victim.session, some_state(open_model(legacy_checkpoint(other.shape, other.seed))));
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT) << answer;
    EXPECT_TRUE(answer.says("the state of another model")) << answer;
    EXPECT_TRUE(answer.says(other.differs)) << answer;
    victim.expect_unchanged();
  }
  Answer answer = restore(victim.session, some_state(open_model(version2_checkpoint(kShape, 1, 2))));
  EXPECT_TRUE(answer.says("group_size")) << answer;
  // One bit of one weight.
  for (size_t from_end : {1, 40, 300}) {
    std::vector<uint8_t> file = legacy_checkpoint(kShape, 1);
    file[28 + from_end] ^= 1;  // in the embedding
    EXPECT_TRUE(restore(victim.session, some_state(open_model(file))).says("dim") ||
                restore(victim.session, some_state(open_model(file))).says("other weights"));
  }
  victim.expect_unchanged();
}

TEST(State, more_positions_than_there_is_room_for_are_refused) {
  Victim victim;
  const std::vector<uint8_t> state = some_state(victim.model);
  Options options = make_options();
  for (int64_t length : {2, 3}) {
    set(options, "context_length", length);
    Session session = make_session(victim.model, options.get());
    ASSERT_TRUE(append(session, {4}, PROOFINFER_LOGITS_LAST).ok());
    const std::vector<uint8_t> before = save(session);
    Answer answer = restore(session, state);
    EXPECT_EQ(answer.status, length < 3 ? PROOFINFER_E_CONTEXT : PROOFINFER_OK) << answer;
    EXPECT_EQ(save(session), length < 3 ? before : state);
  }
}

TEST(State, restoring_into_a_clone_leaves_what_it_shares_as_it_was) {
  SmallWorld world;
  Session session = make_session(world.model), short_one = make_session(world.model);
  ASSERT_TRUE(append(session, small_tokens(200), PROOFINFER_LOGITS_LAST).ok());
  ASSERT_TRUE(append(short_one, std::vector<int32_t>(150, 7), PROOFINFER_LOGITS_LAST).ok());
  const std::vector<uint8_t> before = save(session), other_state = save(short_one);
  CountingAllocator allocator;
  Options options = make_options();
  allocator.install(options);
  proofinfer_session *made = nullptr;
  ASSERT_TRUE(answer_of(proofinfer_session_clone, session.get(), options.get(), &made).ok());
  Session clone(made);
  for (uint64_t k : {0, 1, 1}) {  // pages that an attempt made its own stay so
    allocator.fail_call(k);
    EXPECT_EQ(restore(clone, other_state).status, PROOFINFER_E_MEMORY);
    EXPECT_EQ(save(clone), before);
  }
  ASSERT_TRUE(restore(clone, other_state).ok());
  EXPECT_EQ(save(clone), other_state);
  EXPECT_EQ(save(session), before);
}

TEST(State, the_state_of_a_recorded_case_has_the_recorded_digest) {
  // The same on every machine, kernel set and compiler: what is saved there is restored here.
  for (const std::string &isa : available_isas()) {
    Options options = make_options();
    set_text(options, "isa", isa);
    const std::vector<uint8_t> state = some_state(open_model(legacy_checkpoint(kShape, 1), options.get()));
    char digest[17];
    std::snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)proofinfer::checksum_of(state.data(), state.size()));
    EXPECT_STREQ(digest, "f570bfac9bce4009") << isa;
    const std::vector<uint8_t> quantized = some_state(open_model(version2_checkpoint(kShape, 1, 2), options.get()));
    std::snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)proofinfer::checksum_of(quantized.data(), quantized.size()));
    EXPECT_STREQ(digest, "a44100c97d510de5") << isa;
  }
}

TEST(State, wrong_arguments_are_refused) {
  Victim victim;
  size_t needed = 7;
  EXPECT_EQ(answer_of(proofinfer_session_save, nullptr, nullptr, size_t(0), &needed).status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(needed, 0u);
  EXPECT_EQ(answer_of(proofinfer_session_save, victim.session.get(), nullptr, size_t(8), &needed).status, PROOFINFER_E_ARGUMENT);
  std::vector<uint8_t> small(victim.before.size() - 1, 0xAA), untouched = small;
  EXPECT_EQ(answer_of(proofinfer_session_save, victim.session.get(), small.data(), small.size(), &needed).status, PROOFINFER_E_BUFFER);
  EXPECT_EQ(needed, victim.before.size());
  EXPECT_EQ(small, untouched);
  EXPECT_EQ(answer_of(proofinfer_session_restore, victim.session.get(), nullptr, size_t(8)).status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(answer_of(proofinfer_session_restore, victim.session.get(), nullptr, size_t(0)).status, PROOFINFER_E_TRUNCATED);
  EXPECT_EQ(answer_of(proofinfer_session_restore, nullptr, victim.before.data(), victim.before.size()).status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(restore(victim.session, {'G', 'G', 'U', 'F', 0, 0, 0, 0, 0}).status, PROOFINFER_E_UNRECOGNIZED);
  victim.expect_unchanged();
}

}  // namespace proofinfer_test
