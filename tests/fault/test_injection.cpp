// Every allocation, read, write, open and thread start of every entry point fails once, and from then on: the right code, nothing leaked, every
// object as before and usable. Prints, for each sweep, how many calls there were to fail.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "fault/inject.h"
#include "support/files.h"
#include "support/gguf_model.h"
#include "support/scheduling.h"
#include "support/vocabulary.h"

namespace proofinfer_test {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMostCalls = 20000;

// What is swept: an attempt that can be repeated, and what must hold after each.
struct Entry {
  std::string name;
  std::function<Answer()> attempt;
  std::function<void(bool succeeded)> after;  // and frees what a success made
  std::function<void()> before = [] {};       // what the attempt needs, made in peace
};

struct Mode {
  SystemFault fault;
  bool from_then_on;
  const char *name;
  int32_t expected;  // PROOFINFER_OK: the fault is survived
};

constexpr Mode kAllocationModes[] = {{SystemFault::kAllocation, false, "allocation fails", PROOFINFER_E_MEMORY},
                                     {SystemFault::kAllocation, true, "allocations fail from then on", PROOFINFER_E_MEMORY}};
constexpr Mode kReadModes[] = {{SystemFault::kOpen, false, "open or fstat fails", PROOFINFER_E_IO},
                               {SystemFault::kOpen, true, "open and fstat fail from then on", PROOFINFER_E_IO},
                               {SystemFault::kRead, false, "read fails", PROOFINFER_E_IO},
                               {SystemFault::kRead, true, "reads fail from then on", PROOFINFER_E_IO},
                               {SystemFault::kReadEnd, false, "read ends early", PROOFINFER_E_IO},
                               {SystemFault::kReadShort, false, "read is short", PROOFINFER_OK},
                               {SystemFault::kReadShort, true, "reads are short from then on", PROOFINFER_OK},
                               {SystemFault::kReadInterrupted, false, "read is interrupted", PROOFINFER_OK}};
constexpr Mode kWriteModes[] = {{SystemFault::kWrite, false, "write fails", PROOFINFER_E_IO},
                                {SystemFault::kWrite, true, "writes fail from then on", PROOFINFER_E_IO},
                                {SystemFault::kWriteNothing, false, "write takes nothing", PROOFINFER_E_IO},
                                {SystemFault::kWriteShort, false, "write is short", PROOFINFER_OK},
                                {SystemFault::kWriteShort, true, "writes are short from then on", PROOFINFER_OK},
                                {SystemFault::kWriteInterrupted, false, "write is interrupted", PROOFINFER_OK},
                                {SystemFault::kFinish, false, "fsync or rename fails", PROOFINFER_E_IO}};

// Call k = 0, 1, ... fails, until an attempt makes no such call any more: that one is the clean success.
void sweep(const Entry &entry, const Mode &mode, const char *path = nullptr) {
  const int64_t before = held_blocks();
  uint64_t clean = 0, k = 0;
  for (; clean == 0; k++) {
    ASSERT_LT(k, kMostCalls);
    SCOPED_TRACE(entry.name + ": " + mode.name + ", k = " + std::to_string(k + 1));
    entry.before();
    arm(mode.fault, k, mode.from_then_on, path);
    const Answer answer = entry.attempt();
    const uint64_t fired = disarm();
    EXPECT_EQ(answer.status, fired ? mode.expected : PROOFINFER_OK) << answer;
    EXPECT_EQ((": " + answer.message).find(": : "), std::string::npos) << "what could not be had is not named: " << answer;
    entry.after(answer.ok());
    EXPECT_EQ(held_blocks(), before);
    EXPECT_EQ(inheritable_files(), 0);
    if (testing::Test::HasFailure()) return;
    clean += fired == 0;
  }
  EXPECT_EQ(clean, 1u);
  EXPECT_GT(k, 1u) << entry.name << " has no call that this fault concerns: " << mode.name;
  std::printf("%-32s %-32s k = 1..%llu\n", entry.name.c_str(), mode.name, (unsigned long long)k);
}

template <size_t n>
void sweep(const Entry &entry, const Mode (&modes)[n], const char *path = nullptr) {
  for (const Mode &mode : modes) sweep(entry, mode, path);
}

std::vector<float> logits_of(const Model &model) {
  Session session = make_session(model);
  EXPECT_TRUE(append(session, {1, 2, 3}, PROOFINFER_LOGITS_LAST).ok());
  return logits(session, 2);
}

// Opens into a place that outlives the attempt. An opened model must compute what a model opened in peace computes.
struct Opening {
  Model model;
  std::vector<float> expected;

  template <typename Where>
  Entry entry(const std::string &name, const Where &where, const proofinfer_options *options = nullptr) {
    expected = logits_of(open_model(where, options));
    return {name,
            [this, where, options] {
              Answer answer;
              model = open_model(where, options, &answer);
              return answer;
            },
            [this](bool succeeded) {
              EXPECT_EQ(model != nullptr, succeeded);
              if (model) {
                EXPECT_EQ(logits_of(model), expected);
              }
              model.reset();
            },
            [] {}};
  }
};

constexpr Shape kShape = {4, 6, 2, 2, 1, -5, 8};

// A model, a tokenizer and a session that holds three tokens, and what must still be true of the session.
struct Used {
  SmallWorld world;
  Session session = make_session(world.model);
  std::vector<float> expected;

  Used() {
    EXPECT_TRUE(append(session, {1, 4, 5}, PROOFINFER_LOGITS_LAST).ok());
    expected = logits(session, 2);
  }
  // The session is where it was, and goes on with the right bits.
  void check() {
    ASSERT_EQ(proofinfer_session_position(session.get()), 3u);
    ASSERT_TRUE(answer_of(proofinfer_session_rewind, session.get(), size_t(2)).ok());
    ASSERT_TRUE(append(session, {5}, PROOFINFER_LOGITS_LAST).ok());
    EXPECT_EQ(logits(session, 2), expected);
  }
};

// An entry that makes one object and frees it again.
template <typename Handle, typename Make>
Entry maker(const char *name, Handle *made, Make make) {
  return {name, make,
          [made](bool succeeded) {
            EXPECT_EQ(*made != nullptr, succeeded);
            made->reset();
          },
          [] {}};
}

template <typename Handle, typename Function, typename... Arguments>
Answer make_into(Handle *made, Function function, Arguments... arguments) {
  typename Handle::pointer handle = reinterpret_cast<typename Handle::pointer>(uintptr_t(1));
  Answer answer = answer_of(function, arguments..., &handle);
  made->reset(handle);
  return answer;
}

}  // namespace

TEST(FaultInjection, opening_a_model_from_memory) {
  for (Format format : kFormats) {
    Opening opening;
    const std::string name = std::string("open memory, ") + format_name(format);
    sweep(opening.entry(name, checkpoint(format, kShape, 1, 2)), kAllocationModes);
  }
}

TEST(FaultInjection, opening_a_model_from_a_path) {
  for (Format format : kFormats) {
    ScratchFile file(checkpoint(format, kShape, 1, 2));
    Opening opening;
    const std::string name = std::string("open path, ") + format_name(format);
    const Entry entry = opening.entry(name, file.path());
    sweep(entry, kAllocationModes);
    sweep(entry, kReadModes);
  }
}

TEST(FaultInjection, opening_a_model_of_a_gguf_file) {
  GgufToy toy;
  toy.dim = 32, toy.hidden_dim = 32, toy.n_layers = 2, toy.n_heads = 2, toy.n_kv_heads = 1, toy.vocab_size = 18,
  toy.rope = {2.0f, 1.0f, 4.0f};
  for (const std::vector<std::string> &types : {std::vector<std::string>{"q4_1", "f32"}, std::vector<std::string>{"f16", "bf16"}}) {
    toy.types = types;
    GgufFile gguf = toy_gguf(toy, 3);
    for (const char *name : {"llama.feed_forward_length", "llama.attention.head_count"}) gguf.remove_key(name);
    gguf.add_array("llama.feed_forward_length", kU32, std::vector<uint32_t>{32, 32});
    gguf.add_array("llama.attention.head_count", kI32, std::vector<int32_t>{2, 2});
    if (types[0] == "f16") {
      GgufFile::Tensor *norm = gguf.tensor("output_norm.weight");
      norm->type = 1, norm->data.clear();
      for (uint32_t i = 0; i < toy.dim; i++) put(&norm->data, uint16_t(0x3C00));
    }
    // Longer than what is read ahead.
    gguf.add("general.description", std::string(9000, 'x'));
    gguf.add("general.tags", std::vector<std::string>(3, std::string(5000, 'y')));
    gguf.add_array("general.numbers", kF64, std::vector<double>(2000, 0.5));
    ScratchFile file(gguf.bytes());
    Opening opening;
    const Entry entry = opening.entry("open path, GGUF", file.path());
    sweep(entry, kAllocationModes);
    sweep(entry, kReadModes);
  }
}

// Whatever fails later: the message is that of the first read that failed. Until then the loading has told how far it is.
TEST(FaultInjection, the_first_read_that_fails_is_told_and_how_far_the_loading_came) {
  GgufToy toy;
  toy.types = {"f32", "q8_0", "f16"};
  const Options options = make_options();
  ASSERT_TRUE(answer_of(proofinfer_options_set_i64, options.get(), PROOFINFER_TEXT("threads"), int64_t(1)).ok());
  for (const std::vector<uint8_t> &bytes : {toy_gguf(toy, 3).bytes(), checkpoint(Format::kLegacy, kShape, 1, 2)}) {
    const ScratchFile file(bytes);
    uint64_t farthest = 0;
    std::set<uint64_t> told;
    for (uint64_t at = 0; at < 2000; at++) {
      std::string messages[2];
      uint64_t fired = 0;
      for (bool from_then_on : {false, true}) {
        proofinfer_cancel *created = nullptr;
        ASSERT_TRUE(answer_of(proofinfer_cancel_create, &created).ok());
        const Cancel cancel(created);
        arm(SystemFault::kRead, at, from_then_on);
        proofinfer_model *opened = nullptr;
        messages[from_then_on] =
            answer_of(proofinfer_model_open, file.path().data(), file.path().size(), options.get(), cancel.get(), &opened).message;
        fired = disarm();
        const Model model(opened);
        uint64_t done = 0, total = 0;
        proofinfer_cancel_progress(cancel.get(), &done, &total);
        EXPECT_GE(done, farthest) << at;
        farthest = done;
        told.insert(done);
      }
      if (fired == 0) break;
      EXPECT_EQ(messages[0], messages[1]) << at;
    }
    EXPECT_GT(farthest, bytes.size() / 2);
    EXPECT_GT(told.size(), 16u) << "every tensor is told of";
  }
}

TEST(FaultInjection, opening_a_model_that_takes_memory_straight_from_the_system) {
  const std::vector<uint8_t> file = legacy_checkpoint({128, 384, 4, 4, 4, 1200, 8}, 1);
  Opening opening;
  sweep(opening.entry("open memory, large", file), kAllocationModes);
}

TEST(FaultInjection, opening_and_writing_a_packed_file) {
  const std::vector<uint8_t> checkpoint = version2_checkpoint(kShape, 1, 2), old = {1, 2, 3};
  ScratchFile from(checkpoint), to(old);
  auto convert = [&] {
    return answer_of(proofinfer_convert, from.path().data(), from.path().size(), to.path().data(), to.path().size(),
                     PROOFINFER_FORMAT_PACKED, 0, nullptr);
  };
  ASSERT_TRUE(convert().ok());
  const std::vector<uint8_t> packed = *read_file(to.path());
  const Entry writing = {
      "convert to packed", convert, [&](bool succeeded) { EXPECT_EQ(*read_file(to.path()), succeeded ? packed : old); },
      [&] { std::ofstream(to.path(), std::ios::binary).write(reinterpret_cast<const char *>(old.data()), std::streamsize(old.size())); }};
  sweep(writing, kAllocationModes);
  sweep(writing, kReadModes);
  sweep(writing, kWriteModes);
  ScratchFile file(packed);
  Opening mapped, read, memory;
  const Entry mapping = mapped.entry("open packed, mapped", file.path());
  sweep(mapping, kAllocationModes);
  sweep(mapping, kReadModes);
  Options options = make_options();
  set(options, "map", 0);
  const Entry reading = read.entry("open packed, read", file.path(), options.get());
  sweep(reading, kAllocationModes);
  sweep(reading, kReadModes);
  sweep(memory.entry("open packed from memory", packed), kAllocationModes);
}

// Between the parts of a file a cancel is seen.
TEST(FaultInjection, a_packed_file_is_read_in_parts_of_sixteen_megabytes_at_most) {
  ScratchFile from(legacy_checkpoint({512, 1024, 2, 8, 8, 3000, 8}, 1)), to(std::vector<uint8_t>{});
  ASSERT_TRUE(answer_of(proofinfer_convert, from.path().data(), from.path().size(), to.path().data(), to.path().size(),
                        PROOFINFER_FORMAT_PACKED, 0, nullptr)
                  .ok());
  ASSERT_GT(fs::file_size(to.path()), uintmax_t(20) << 20);
  Options options = make_options();
  set(options, "map", 0);
  ASSERT_TRUE(open_model(to.path(), options.get()));
  EXPECT_EQ(longest_read(), int64_t(16) << 20);
}

TEST(FaultInjection, a_file_that_is_truncated_or_removed_while_it_is_read) {
  const std::vector<uint8_t> bytes = version2_checkpoint(kShape, 1, 2);
  const std::string path = ScratchFile(bytes).path();
  auto restore = [&] {
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char *>(bytes.data()), std::streamsize(bytes.size()));
  };
  restore();
  Opening opening;
  Entry entry = opening.entry("open path", path);
  auto after = entry.after;
  entry.after = [&](bool succeeded) {
    after(succeeded);
    restore();
  };
  sweep(entry, {SystemFault::kReadTruncate, false, "file is truncated", PROOFINFER_E_IO}, path.c_str());
  sweep(entry, {SystemFault::kReadUnlink, false, "file is removed", PROOFINFER_OK}, path.c_str());
  fs::remove(path);
}

TEST(FaultInjection, opening_a_tokenizer) {
  const std::vector<uint8_t> bytes = tokenizer_file(small_pieces());
  ScratchFile file(bytes);
  Tokenizer made;
  const int32_t count = small_shape().vocab();
  sweep(maker("tokenizer open memory", &made,
              [&] {
                Answer answer;
                made = open_tokenizer(bytes, count, nullptr, &answer);
                return answer;
              }),
        kAllocationModes);
  const Entry from_path = maker("tokenizer open path", &made, [&] {
    Answer answer;
    made = open_tokenizer(file.path(), count, &answer);
    return answer;
  });
  sweep(from_path, kAllocationModes);
  sweep(from_path, kReadModes);
}

// Pieces that end in the reader's window, span two of them, and are longer than one.
TEST(FaultInjection, opening_a_tokenizer_of_a_gguf_file) {
  RuleVocabulary vocabulary;
  vocabulary.pre = "llama-bpe";
  // Longer than what is read ahead, so that every array is read in several parts.
  vocabulary.others = {{std::string(5000, 'q')}, {"<x>", 0, kUserDefined}};
  for (char c = 'a'; c < 'z'; c++) vocabulary.rules.push_back({std::string(1, c), "z"});
  vocabulary.rules.push_back({vocabulary.others[0].text, "z"});
  GgufFile by_rules = rule_file(vocabulary);
  by_rules.add("tokenizer.chat_template", "{{ x }}");
  for (const GgufFile &gguf : {by_rules, scored_file(scored_pieces({{"\xE2\x96\x81"}, {"a"}, {std::string(5000, 'q')}}))}) {
    ScratchFile file(gguf.bytes());
    Tokenizer made;
    const Entry entry = maker("tokenizer open path, GGUF", &made, [&] {
      Answer answer;
      made = open_tokenizer(file.path(), 0, &answer);
      return answer;
    });
    sweep(entry, kAllocationModes);
    sweep(entry, kReadModes);
  }
}

TEST(FaultInjection, opening_a_tokenizer_of_long_pieces) {
  std::vector<Piece> pieces = small_pieces();
  for (size_t length : {3000u, 7000u, 9000u, 20000u, 5u}) pieces.push_back({std::string(length, 'q'), -1.0f});
  ScratchFile file(tokenizer_file(pieces));
  Tokenizer made;
  const Entry entry = maker("tokenizer open path, long", &made, [&] {
    Answer answer;
    made = open_tokenizer(file.path(), int32_t(pieces.size()), &answer);
    return answer;
  });
  sweep(entry, kReadModes);
}

// The file is read twice; the second time its pieces are longer than those that were measured.
TEST(FaultInjection, a_tokenizer_that_changes_between_two_reads) {
  ScratchFile first(tokenizer_file({{"a", 0.0f}, {"bc", 0.0f}, {"defg", 0.0f}})),
      other(tokenizer_file({{"a", 0.0f}, {"defg", 0.0f}, {"bc", 0.0f}}));
  const std::string path = other.path();
  int changed = 0;
  for (uint64_t k = 0; k < 4; k++) {
    Answer answer;
    arm(SystemFault::kReadOther, k, true, path.c_str());
    Tokenizer made = open_tokenizer(first.path(), 2, &answer);
    disarm();
    EXPECT_EQ(made != nullptr, answer.ok());
    if (answer.ok()) continue;
    EXPECT_EQ(answer.status, PROOFINFER_E_IO) << answer;
    EXPECT_TRUE(answer.says("piece 1: the file changed while it was read")) << answer;
    changed++;
  }
  EXPECT_EQ(changed, 1);
}

TEST(FaultInjection, making_objects) {
  Used used;
  const proofinfer_model *model = used.world.model.get();
  const proofinfer_tokenizer *tokenizer = used.world.tokenizer.get();
  Options options;
  sweep(maker("options create", &options, [&] { return make_into(&options, proofinfer_options_create); }), kAllocationModes);
  Cancel cancel;
  sweep(maker("cancel create", &cancel, [&] { return make_into(&cancel, proofinfer_cancel_create); }), kAllocationModes);
  Session session;
  sweep(maker("session create", &session, [&] { return make_into(&session, proofinfer_session_create, model, nullptr); }),
        kAllocationModes);
  Batch batch;
  sweep(maker("batch create", &batch, [&] { return make_into(&batch, proofinfer_batch_create, model, size_t(5), nullptr); }),
        kAllocationModes);
  Sampler sampler;
  sweep(maker("sampler create", &sampler, [&] { return make_into(&sampler, proofinfer_sampler_create, 300, nullptr); }), kAllocationModes);
  Options shaping = make_options();
  set_f64(shaping, "temperature", 1);
  set_f64(shaping, "typical_p", 0.9);
  set_f64(shaping, "min_p", 0.1);
  set(shaping, "top_k", 40);
  set_f64(shaping, "presence_penalty", 1);
  sweep(maker("sampler create, all filters", &sampler,
              [&] { return make_into(&sampler, proofinfer_sampler_create, 300, static_cast<const proofinfer_options *>(shaping.get())); }),
        kAllocationModes);
  Stream stream;
  sweep(maker("stream create", &stream, [&] { return make_into(&stream, proofinfer_stream_create, tokenizer, -1); }), kAllocationModes);
  used.check();
}

TEST(FaultInjection, cloning_a_session) {
  Used used;
  Session made;
  sweep(maker("session clone", &made, [&] { return make_into(&made, proofinfer_session_clone, used.session.get(), nullptr); }),
        kAllocationModes);
  used.check();
}

TEST(FaultInjection, appending_to_pages_that_are_shared) {
  Used used;
  const std::vector<int32_t> prompt = small_tokens(200), more(80, 9);
  Session original = make_session(used.world.model), other;
  ASSERT_TRUE(append(original, prompt, PROOFINFER_LOGITS_NONE).ok());
  auto finish = [&] {
    EXPECT_TRUE(append(other, {5}, PROOFINFER_LOGITS_LAST).ok());
    return logits(other, proofinfer_session_position(other.get()) - 1);
  };
  std::vector<float> after_more, after_none;
  for (bool appended : {true, false}) {
    other = make_session(used.world.model);
    ASSERT_TRUE(append(other, {prompt.begin(), prompt.begin() + 70}, PROOFINFER_LOGITS_NONE).ok());
    ASSERT_TRUE(append(other, appended ? more : std::vector<int32_t>(), PROOFINFER_LOGITS_NONE).ok());
    (appended ? after_more : after_none) = finish();
  }
  other.reset();
  sweep({"append to shared pages", [&] { return append(other, more, PROOFINFER_LOGITS_LAST); },
         [&](bool succeeded) {
           EXPECT_EQ(proofinfer_session_position(other.get()), succeeded ? 150u : 70u);
           EXPECT_EQ(finish(), succeeded ? after_more : after_none);
           other.reset();
         },
         [&] {
           ASSERT_TRUE(make_into(&other, proofinfer_session_clone, original.get(), nullptr).ok());
           ASSERT_TRUE(answer_of(proofinfer_session_rewind, other.get(), size_t(70)).ok());
         }},
        kAllocationModes);
}

TEST(FaultInjection, scoring) {
  Used used;
  const std::vector<int32_t> prompt = small_tokens(70), tokens = small_tokens(90);
  const size_t counts[] = {3, 80, 7};
  std::vector<float> found(90), expected(90);
  const proofinfer_options *options = nullptr;
  proofinfer_cancel *cancel = nullptr;
  auto texts = [&](float *to) {
    return answer_of(proofinfer_model_score, used.world.model.get(), tokens.data(), static_cast<const size_t *>(counts), size_t(3), options,
                     to, cancel);
  };
  ASSERT_TRUE(texts(expected.data()).ok());
  sweep({"score texts", [&] { return texts(found.data()); },
         [&](bool succeeded) {
           for (size_t i = 1; succeeded && i < 3; i++) EXPECT_EQ(found[i], expected[i]);
         }},
        kAllocationModes);
  // Its last token is evaluated once more, on a page that is shared.
  Session original = make_session(used.world.model), clone;
  ASSERT_TRUE(append(original, prompt, PROOFINFER_LOGITS_NONE).ok());
  ASSERT_TRUE(answer_of(proofinfer_session_score, original.get(), tokens.data(), tokens.size(), expected.data(), cancel).ok());
  ASSERT_TRUE(append(original, prompt, PROOFINFER_LOGITS_NONE).ok());
  sweep({"score on shared pages",
         [&] { return answer_of(proofinfer_session_score, clone.get(), tokens.data(), tokens.size(), found.data(), cancel); },
         [&](bool succeeded) {
           EXPECT_EQ(proofinfer_session_position(clone.get()), succeeded ? 160u : 70u);
           if (succeeded) {
             EXPECT_EQ(found, expected);
           }
           clone.reset();
         },
         [&] {
           ASSERT_TRUE(make_into(&clone, proofinfer_session_clone, original.get(), nullptr).ok());
           ASSERT_TRUE(answer_of(proofinfer_session_rewind, clone.get(), size_t(70)).ok());
         }},
        kAllocationModes);
  used.check();
}

TEST(FaultInjection, saving_and_restoring_a_session) {
  Used used;
  const std::vector<int32_t> prompt = small_tokens(150);
  auto state_of = [](const Session &session) {
    std::vector<uint8_t> bytes(1 << 18);
    size_t needed = 0;
    EXPECT_TRUE(answer_of(proofinfer_session_save, session.get(), bytes.data(), bytes.size(), &needed).ok());
    bytes.resize(needed);
    return bytes;
  };
  Session original = make_session(used.world.model), source = make_session(used.world.model), other;
  ASSERT_TRUE(append(original, prompt, PROOFINFER_LOGITS_LAST).ok());
  ASSERT_TRUE(append(source, std::vector<int32_t>(140, 9), PROOFINFER_LOGITS_LAST).ok());
  const std::vector<uint8_t> before = state_of(original), state = state_of(source);
  sweep({"restore into shared pages", [&] { return answer_of(proofinfer_session_restore, other.get(), state.data(), state.size()); },
         [&](bool succeeded) {
           EXPECT_EQ(state_of(other), succeeded ? state : before);
           EXPECT_EQ(state_of(original), before);
           other.reset();
         },
         [&] { ASSERT_TRUE(make_into(&other, proofinfer_session_clone, original.get(), nullptr).ok()); }},
        kAllocationModes);
  // Saving has no call that can fail.
  arm(SystemFault::kAllocation, 0, true);
  const std::vector<uint8_t> saved = [&] {
    std::vector<uint8_t> bytes(before.size());
    size_t needed = 0;
    EXPECT_TRUE(answer_of(proofinfer_session_save, original.get(), bytes.data(), bytes.size(), &needed).ok());
    return bytes;
  }();
  EXPECT_EQ(disarm(), 0u);
  EXPECT_EQ(saved, before);
}

TEST(FaultInjection, setting_stop_tokens) {
  // Each attempt replaces what the one before set, so that the memory held is the same.
  Options options = make_options();
  const std::vector<int32_t> ids = {1, 2, 3};
  set_tokens(options, "stop_tokens", ids);
  sweep({"options set tokens",
         [&] { return answer_of(proofinfer_options_set_tokens, options.get(), PROOFINFER_TEXT("stop_tokens"), ids.data(), ids.size()); },
         [](bool) {}},
        kAllocationModes);
}

TEST(FaultInjection, setting_stop_strings) {
  Options options = make_options();
  const size_t bytes[] = {1, 2};
  auto set_texts = [&] {
    return answer_of(proofinfer_options_set_texts, options.get(), PROOFINFER_TEXT("stop_strings"), "abc",
                     static_cast<const size_t *>(bytes), size_t(2));
  };
  ASSERT_TRUE(set_texts().ok());
  sweep({"options set texts", set_texts, [](bool) {}}, kAllocationModes);
}

TEST(FaultInjection, limiting_a_sampler) {
  Sampler sampler;
  const float logits[4] = {1, 2, 4, 3};
  auto expect_draw = [&](int32_t expected) {
    int32_t token = -1;
    EXPECT_TRUE(answer_of(proofinfer_sampler_sample, sampler.get(), static_cast<const float *>(logits), size_t(4), &token).ok());
    EXPECT_EQ(token, expected);
  };
  const int32_t ids[] = {2, 3};
  const float biases[] = {-9, -9};
  const uint32_t mask = 3;
  auto make = [&] { sampler = make_sampler(4); };
  auto after = [&](bool succeeded) {
    expect_draw(succeeded ? 1 : 2);
    sampler.reset();
  };
  sweep({"sampler set bias",
         [&] {
           return answer_of(proofinfer_sampler_set_bias, sampler.get(), static_cast<const int32_t *>(ids),
                            static_cast<const float *>(biases), size_t(2));
         },
         after, make},
        kAllocationModes);
  sweep(
      {"sampler set banned",
       [&] { return answer_of(proofinfer_sampler_set_banned, sampler.get(), static_cast<const int32_t *>(ids), size_t(2)); }, after, make},
      kAllocationModes);
  sweep({"sampler set mask", [&] { return answer_of(proofinfer_sampler_set_mask, sampler.get(), &mask, size_t(1)); }, after, make},
        kAllocationModes);
}

TEST(FaultInjection, encoding) {
  Used used;
  const std::string text = "the ab the a\xF0\x9F\xA6\x99";
  int32_t ids[64];
  size_t count = 0;
  sweep({"encode",
         [&] {
           return answer_of(proofinfer_tokenizer_encode, used.world.tokenizer.get(), text.data(), text.size(), PROOFINFER_ENCODE_BOS, ids,
                            size_t(64), &count);
         },
         [&](bool succeeded) { EXPECT_EQ(count > 0, succeeded); }},
        kAllocationModes);
}

TEST(FaultInjection, appending_with_the_logits_of_all_positions) {
  Used used;
  const std::vector<int32_t> tokens = small_tokens(70);
  Session session;
  sweep({"append", [&] { return append(session, tokens, PROOFINFER_LOGITS_ALL); },
         [&](bool succeeded) {
           EXPECT_EQ(proofinfer_session_position(session.get()), succeeded ? 73u : 3u);
           std::swap(session, used.session);
           if (!succeeded) used.check();
           std::swap(session, used.session);
           session.reset();
         },
         [&] {
           session = make_session(used.world.model);
           ASSERT_TRUE(append(session, {1, 4, 5}, PROOFINFER_LOGITS_LAST).ok());
         }},
        kAllocationModes);
}

TEST(FaultInjection, evaluating_a_batch_with_the_logits_of_many_positions) {
  Used used;
  Session sessions[3];
  std::vector<float> kept[3];
  Batch batch;
  auto evaluate = [&] { return answer_of(proofinfer_batch_evaluate, batch.get(), nullptr); };
  sweep({"batch evaluate, 3 sessions", evaluate,
         [&](bool succeeded) {
           for (size_t i = 0; i < 3 && !succeeded; i++) {  // each session is as before: its position, its logits
             EXPECT_EQ(proofinfer_session_position(sessions[i].get()), 3u);
             EXPECT_EQ(logits(sessions[i], 2), kept[i]);
           }
           if (!succeeded) {
             EXPECT_TRUE(evaluate().ok());  // the queue is kept
           }
           for (Session &session : sessions) {
             EXPECT_EQ(proofinfer_session_position(session.get()), 6u);
             for (size_t position : {3u, 4u, 5u}) EXPECT_EQ(logits(session, position).size(), size_t(small_shape().vocab()));
             session.reset();
           }
           batch.reset();
         },
         [&] {
           ASSERT_TRUE(make_into(&batch, proofinfer_batch_create, used.world.model.get(), size_t(9), nullptr).ok());
           for (int32_t i = 0; i < 3; i++) {
             sessions[i] = make_session(used.world.model);
             ASSERT_TRUE(append(sessions[i], {1, 4, 5 + i}, PROOFINFER_LOGITS_LAST).ok());
             kept[i] = logits(sessions[i], 2);
           }
           for (int32_t token : {6, 7, 8})
             for (Session &session : sessions) ASSERT_TRUE(answer_of(proofinfer_batch_add, batch.get(), session.get(), token, 1).ok());
         }},
        kAllocationModes);
}

TEST(FaultInjection, making_a_generation_and_pulling_from_it) {
  Used used;
  Sampler sampler = make_sampler(small_shape().vocab());
  Generation generation;
  std::vector<int32_t> expected, found;
  auto pull = [&] {
    found.clear();
    for (int i = 0; i < 3; i++) {
      int32_t token = -1, stop = 0;
      char text[64];
      size_t needed = 0;
      Answer answer = answer_of(proofinfer_generation_next, generation.get(), nullptr, &token, text, sizeof(text), &needed, &stop);
      if (!answer.ok()) return answer;
      found.push_back(token);
    }
    return Answer();
  };
  generation = make_generation(used.session, used.world.tokenizer, sampler, {6, 7});
  ASSERT_TRUE(pull().ok());
  expected = found;
  generation.reset();
  const int32_t prompt[] = {6, 7};
  Options options = make_options();
  set(options, "logprobs", 3);
  const size_t stop_bytes[] = {9, 9};
  ASSERT_TRUE(answer_of(proofinfer_options_set_texts, options.get(), PROOFINFER_TEXT("stop_strings"), "not there nor here",
                        static_cast<const size_t *>(stop_bytes), size_t(2))
                  .ok());
  sweep({"generation create and next",
         [&] {
           Answer answer =
               make_into(&generation, proofinfer_generation_create, used.session.get(), used.world.tokenizer.get(), sampler.get(),
                         static_cast<const int32_t *>(prompt), size_t(2), static_cast<const proofinfer_options *>(options.get()));
           return answer.ok() ? pull() : answer;
         },
         [&](bool succeeded) {
           EXPECT_EQ(generation != nullptr, succeeded);
           if (succeeded) {
             EXPECT_EQ(found, expected);
           }
           generation.reset();
         },
         [&] { ASSERT_TRUE(answer_of(proofinfer_session_rewind, used.session.get(), size_t(3)).ok()); }},
        kAllocationModes);
  ASSERT_TRUE(answer_of(proofinfer_session_rewind, used.session.get(), size_t(3)).ok());
  used.check();
}

TEST(FaultInjection, a_scheduler_and_what_is_submitted_to_it) {
  Used used;
  const proofinfer_model *model = used.world.model.get();
  const proofinfer_tokenizer *tokenizer = used.world.tokenizer.get();
  Scheduler scheduler;
  sweep(
      maker("scheduler create", &scheduler, [&] { return make_into(&scheduler, proofinfer_scheduler_create, model, tokenizer, nullptr); }),
      kAllocationModes);

  scheduler = make_scheduler(used.world.model, used.world.tokenizer);
  Job job;
  job.prompt = small_tokens(20);
  job.temperature = 1.0;
  job.max_tokens = 5;
  const Output alone = run_alone(used.world.model, used.world.tokenizer, job);
  const uint64_t held = proofinfer_scheduler_memory_bytes(scheduler.get());
  const Options options = job.options();
  uint64_t id = 0;
  sweep({"scheduler submit",
         [&] { return answer_of(proofinfer_scheduler_submit, scheduler.get(), job.prompt.data(), job.prompt.size(), options.get(), &id); },
         [&](bool succeeded) {
           EXPECT_EQ(proofinfer_scheduler_count(scheduler.get()), succeeded ? 1u : 0u);
           std::map<uint64_t, Output> outputs;
           drain(scheduler, &outputs);
           if (succeeded) {
             EXPECT_EQ(outputs[id], alone);
           }
           EXPECT_EQ(proofinfer_scheduler_memory_bytes(scheduler.get()), held);
         }},
        kAllocationModes);
  scheduler.reset();
  used.check();
}

// The one memory that a step may need: pages that an added generation's session shares with a clone.
TEST(FaultInjection, steps_of_a_scheduler_with_a_session_whose_pages_are_shared) {
  Used used;
  Scheduler scheduler = make_scheduler(used.world.model, used.world.tokenizer);
  Job job;
  job.prompt = small_tokens(100);
  job.max_tokens = 5;
  const Output alone = run_alone(used.world.model, used.world.tokenizer, job);
  const Options options = job.options();
  Sampler sampler = make_sampler(small_shape().vocab(), options.get());
  Session session, clone;
  Generation generation;
  std::map<uint64_t, Output> outputs;
  uint64_t id = 0;
  sweep({"scheduler step",
         [&] {
           drain(scheduler, &outputs);
           return outputs[id].answer;
         },
         [&](bool succeeded) {
           if (!succeeded) {
             // It has left as it was; its session has not moved, and it can come again.
             EXPECT_EQ(proofinfer_session_position(session.get()), 40u);
             EXPECT_TRUE(answer_of(proofinfer_scheduler_add, scheduler.get(), generation.get(), &id).ok());
             drain(scheduler, &outputs);
           }
           EXPECT_EQ(outputs[id], alone);
           outputs.clear(), generation.reset(), clone.reset(), session.reset();
         },
         [&] {
           session = make_session(used.world.model);
           ASSERT_TRUE(append(session, job.prompt, PROOFINFER_LOGITS_NONE).ok());
           ASSERT_TRUE(make_into(&clone, proofinfer_session_clone, session.get(), nullptr).ok());
           ASSERT_TRUE(answer_of(proofinfer_session_rewind, session.get(), size_t(40)).ok());
           generation = make_generation(session, used.world.tokenizer, sampler, {job.prompt.begin() + 40, job.prompt.end()}, options.get());
           ASSERT_TRUE(answer_of(proofinfer_scheduler_add, scheduler.get(), generation.get(), &id).ok());
         }},
        kAllocationModes);
}

TEST(FaultInjection, converting) {
  const fs::path folder = fs::path(testing::TempDir()) / ("fault." + std::to_string(getpid()));
  fs::create_directories(folder);
  const Shape shape = {4, 6, 1, 2, 1, -5, 8};
  const std::vector<uint8_t> old = {1, 2, 3};
  const std::string from = folder / "from.bin", to = folder / "to.bin";
  auto write = [](const std::string &path, const std::vector<uint8_t> &bytes) {
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char *>(bytes.data()), std::streamsize(bytes.size()));
  };
  struct Way {
    const char *name;
    Format from;
    int32_t to, group_size;
  };
  for (const Way &way : {Way{"convert, to version 2", Format::kLegacy, PROOFINFER_FORMAT_VERSION_2, 2},
                         Way{"convert, same group", Format::kVersion2, PROOFINFER_FORMAT_VERSION_2, 2},
                         Way{"convert, version 2 to legacy", Format::kVersion2, PROOFINFER_FORMAT_LEGACY, 0}}) {
    auto convert = [&] {
      return answer_of(proofinfer_convert, from.data(), from.size(), to.data(), to.size(), way.to, way.group_size, nullptr);
    };
    write(from, checkpoint(way.from, shape, 1, 2));
    ASSERT_TRUE(convert().ok());
    const std::vector<uint8_t> converted = *read_file(to);
    const Entry entry = {way.name, convert,
                         [&](bool succeeded) {
                           EXPECT_EQ(*read_file(to), succeeded ? converted : old);  // whole or unchanged
                           EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 2);
                         },
                         [&] { write(to, old); }};
    sweep(entry, kAllocationModes);
    sweep(entry, kReadModes);
    sweep(entry, kWriteModes);
  }
  fs::remove_all(folder);
}

namespace {

Options four_threads() {
  Options options = make_options();
  set(options, "threads", 4);
  set_u64(options, "share_from_bytes", 0);
  return options;
}

}  // namespace

TEST(FaultInjection, opening_a_model_on_four_threads) {
  const Options options = four_threads();
  for (Format format : kFormats) {
    ScratchFile file(checkpoint(format, {16, 40, 2, 2, 1, -70, 8}, 1, 8));
    Opening opening;
    const Entry entry = opening.entry(std::string("open, 4 threads, ") + format_name(format), file.path(), options.get());
    sweep(entry, kReadModes);
  }
}

TEST(FaultInjection, starting_threads) {
  // A pool that gets fewer threads, or none, computes the same with those it has.
  const Options options = four_threads();
  Opening opening;
  const Entry entry = opening.entry("open and compute, 4 threads", small_checkpoint(), options.get());
  sweep(entry, {SystemFault::kThread, false, "thread start fails", PROOFINFER_OK});
  sweep(entry, {SystemFault::kThread, true, "thread starts fail from then on", PROOFINFER_OK});
}

}  // namespace proofinfer_test
