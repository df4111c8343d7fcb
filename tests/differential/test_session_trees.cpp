// Random trees of clone, append, rewind, save and restore over one to eight sessions that also share batches: the logits of every appended
// position are those of a fresh run of the same tokens. Prints the seed; PROOFINFER_PROPERTY_SEED replays it, PROOFINFER_PROPERTY_COUNT changes
// how many operations are drawn.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "support/checkpoint.h"
#include "support/gguf_model.h"
#include "support/handles.h"
#include "support/random.h"

namespace proofinfer_test {

namespace {

constexpr uint64_t kDefaultSeed = 20261129;
constexpr uint64_t kDefaultCount = 6000;
constexpr size_t kOperationsOfTree = 60;
constexpr size_t kMostSessions = 8;
constexpr int32_t kSeqLen = 200;

using Rows = std::vector<std::vector<float>>;

// The logits of every position of a sequence, from a new session of the scalar kernels on one thread.
class FreshRuns {
 public:
  explicit FreshRuns(const std::vector<uint8_t> &file) {
    Options options = make_options();
    set_text(options, "isa", "scalar");
    model_ = open_model(file, options.get());
  }
  bool same(const Session &session, const std::vector<int32_t> &tokens, size_t begin, const std::vector<bool> &wanted) {
    Session fresh = make_session(model_);
    EXPECT_TRUE(append(fresh, tokens, PROOFINFER_LOGITS_ALL).ok());
    for (size_t at = begin; at < tokens.size(); at++) {
      if (!wanted[at - begin]) continue;
      const std::vector<float> got = logits(session, at), want = logits(fresh, at);
      if (got.size() == want.size() && std::memcmp(got.data(), want.data(), got.size() * sizeof(float)) == 0) continue;
      ADD_FAILURE() << "position " << at << " of " << tokens.size();
      return false;
    }
    return true;
  }

 private:
  Model model_;
};

struct Held {
  Session session;
  std::vector<int32_t> tokens;  // what it must hold
};

struct SavedState {
  std::vector<uint8_t> bytes;
  std::vector<int32_t> tokens;
};

class Tree {
 public:
  Tree(const std::vector<uint8_t> &file, const Model &model, Random &random, int32_t vocab, std::map<std::string, size_t> *seen)
      : fresh_(file), model_(model), random_(random), vocab_(size_t(vocab)), seen_(*seen) {
    proofinfer_batch *made = nullptr;
    EXPECT_TRUE(answer_of(proofinfer_batch_create, model.get(), size_t(64), nullptr, &made).ok());
    batch_.reset(made);
    held_.push_back({make_session(model), {}});
  }

  bool step() {
    const size_t i = random_.below(held_.size());
    switch (random_.below(14)) {
      case 0:
      case 1: return clone(i);
      case 2:
      case 3: return rewind(i);
      case 4: return save(i);
      case 5: return restore(i);
      case 6: return drop(i);
      case 7:
      case 8: return batch();
      default: return append_some(i);
    }
  }

 private:
  std::vector<int32_t> draw(size_t count) {
    std::vector<int32_t> tokens;
    for (size_t i = 0; i < count; i++) tokens.push_back(int32_t(random_.below(vocab_)));
    return tokens;
  }

  size_t room(size_t i) const { return proofinfer_session_context_length(held_[i].session.get()) - held_[i].tokens.size(); }

  bool append_some(size_t i) {
    if (room(i) == 0) return true;
    const size_t most = room(i) < 90 ? room(i) : 90;
    const std::vector<int32_t> more = draw(random_.between(1, random_.chance(50) ? most : most < 5 ? most : 5));
    const size_t begin = held_[i].tokens.size();
    held_[i].tokens.insert(held_[i].tokens.end(), more.begin(), more.end());
    seen_["append"]++;
    Answer answer = append(held_[i].session, more);
    EXPECT_TRUE(answer.ok()) << answer;
    return answer.ok() && fresh_.same(held_[i].session, held_[i].tokens, begin, std::vector<bool>(more.size(), true));
  }

  // Context lengths of both kinds: the default of the original, and one of its own.
  Options options_for(size_t position) {
    Options options = make_options();
    if (random_.chance(50)) set(options, "context_length", int64_t(random_.between(position > 0 ? position : 1, size_t(kSeqLen))));
    return options;
  }

  bool clone(size_t i) {
    if (held_.size() == kMostSessions) return drop(i);
    Options options = options_for(held_[i].tokens.size());
    proofinfer_session *made = nullptr;
    Answer answer = answer_of(proofinfer_session_clone, held_[i].session.get(), random_.chance(50) ? options.get() : nullptr, &made);
    EXPECT_TRUE(answer.ok()) << answer;
    held_.push_back({Session(made), held_[i].tokens});
    seen_["clone"]++;
    return answer.ok();
  }

  bool rewind(size_t i) {
    const size_t position = random_.chance(70) ? random_.between(held_[i].tokens.size() / 2, held_[i].tokens.size())
                                               : random_.below(held_[i].tokens.size() + 1);
    Answer answer = answer_of(proofinfer_session_rewind, held_[i].session.get(), position);
    EXPECT_TRUE(answer.ok()) << answer;
    held_[i].tokens.resize(position);
    seen_["rewind"]++;
    return answer.ok();
  }

  std::vector<uint8_t> state_of(const Session &session) {
    size_t needed = 0;
    EXPECT_EQ(answer_of(proofinfer_session_save, session.get(), nullptr, size_t(0), &needed).status, PROOFINFER_E_BUFFER);
    std::vector<uint8_t> bytes(needed);
    Answer answer = answer_of(proofinfer_session_save, session.get(), bytes.data(), bytes.size(), &needed);
    EXPECT_TRUE(answer.ok()) << answer;
    return bytes;
  }

  bool save(size_t i) {
    saved_.push_back({state_of(held_[i].session), held_[i].tokens});
    if (saved_.size() > 4) saved_.erase(saved_.begin());
    seen_["save"]++;
    return true;
  }

  bool restore(size_t i) {
    if (saved_.empty()) return save(i);
    const SavedState &state = saved_[random_.below(saved_.size())];
    const bool fits = state.tokens.size() <= proofinfer_session_context_length(held_[i].session.get());
    Answer answer = answer_of(proofinfer_session_restore, held_[i].session.get(), state.bytes.data(), state.bytes.size());
    EXPECT_EQ(answer.status, fits ? PROOFINFER_OK : PROOFINFER_E_CONTEXT) << answer;
    if (!fits) return answer.status == PROOFINFER_E_CONTEXT;
    held_[i].tokens = state.tokens;
    EXPECT_EQ(state_of(held_[i].session), state.bytes);  // equal states, equal bytes
    seen_["restore"]++;
    return !testing::Test::HasFailure();
  }

  bool drop(size_t i) {
    held_.erase(held_.begin() + std::ptrdiff_t(i));
    if (held_.empty()) held_.push_back({make_session(model_), {}});
    seen_["drop"]++;
    return true;
  }

  bool batch() {
    std::vector<size_t> begins;
    std::vector<std::vector<bool>> wanted(held_.size());
    size_t rows = 0;
    for (size_t i = 0; i < held_.size(); i++) {
      begins.push_back(held_[i].tokens.size());
      const size_t most = room(i) < 6 ? room(i) : 6;
      for (size_t k = random_.chance(70) ? 1 : random_.below(most + 1); k > 0 && room(i) > 0; k--, rows++) {
        const int32_t token = int32_t(random_.below(vocab_));
        wanted[i].push_back(random_.chance(60));
        Answer answer = answer_of(proofinfer_batch_add, batch_.get(), held_[i].session.get(), token, int32_t(wanted[i].back()));
        EXPECT_TRUE(answer.ok()) << answer;
        held_[i].tokens.push_back(token);
      }
    }
    Answer answer = answer_of(proofinfer_batch_evaluate, batch_.get(), nullptr);
    EXPECT_TRUE(answer.ok()) << answer;
    seen_["batch of " + std::to_string(held_.size())]++;
    for (size_t i = 0; i < held_.size(); i++)
      if (!fresh_.same(held_[i].session, held_[i].tokens, begins[i], wanted[i])) return false;
    return answer.ok();
  }

  FreshRuns fresh_;
  const Model &model_;
  Random &random_;
  size_t vocab_;
  std::map<std::string, size_t> &seen_;
  std::vector<Held> held_;
  std::vector<SavedState> saved_;
  Batch batch_;
};

// A GGUF file of types that are multiplied in blocks, as halves or as floats, whose heads are wider than its embedding or as wide.
std::vector<uint8_t> gguf_file(Random &random, int32_t heads, int32_t kv_heads, int32_t vocab) {
  GgufToy toy;
  toy.types = random.pick({std::vector<std::string>{"q8_0"}, {"bf16"}, {"f32", "q5_1"}, {"q4_0", "f16"}});
  toy.dim = toy.hidden_dim = 32;
  toy.n_layers = random.pick({1u, 2u});
  toy.n_heads = uint32_t(heads), toy.n_kv_heads = uint32_t(kv_heads);
  toy.head_size = random.pick({32u, 64u}) / toy.n_heads;
  toy.vocab_size = uint32_t(vocab);
  toy.context_length = kSeqLen;
  return toy_gguf(toy, random.next()).bytes();
}

}  // namespace

TEST(SessionTrees, every_session_of_a_tree_gets_the_bits_of_a_fresh_run) {
  const uint64_t seed = from_environment("PROOFINFER_PROPERTY_SEED", kDefaultSeed);
  const uint64_t total = from_environment("PROOFINFER_PROPERTY_COUNT", kDefaultCount);
  std::printf("seed %llu, %llu operations\n", (unsigned long long)seed, (unsigned long long)total);
  const std::vector<std::string> isas = available_isas();
  std::map<std::string, size_t> seen;
  for (uint64_t done = 0, tree = 0; done < total; tree++) {
    Random random(seed ^ tree * 0x2545F4914F6CDD1Du);
    const int32_t group_size = random.pick({0, 0, 4, 8});
    const int32_t kv_heads = random.pick({1, 2}), heads = kv_heads * random.pick({1, 2}), head_size = random.pick({4, 8});
    const Shape shape = {heads * head_size, 16, int32_t(random.between(1, 2)), heads, kv_heads, 20, kSeqLen};
    Random of_file(seed + tree);  // the operations are the same whatever the file is
    const bool is_gguf = of_file.chance(20);
    const std::vector<uint8_t> file = is_gguf                                     ? gguf_file(of_file, heads, kv_heads, shape.vocab())
                                      : group_size && shape.dim % group_size == 0 ? version2_checkpoint(shape, tree, group_size)
                                                                                  : legacy_checkpoint(shape, tree);
    seen[is_gguf ? "tree of GGUF" : "tree of a checkpoint"]++;
    Options options = make_options();
    set_text(options, "isa", isas[tree % isas.size()]);
    set(options, "threads", random.pick({1, 2, 3}));
    set_u64(options, "share_from_bytes", 0);
    Model model = open_model(file, options.get());
    Tree walked(file, model, random, shape.vocab(), &seen);
    for (size_t k = 0; k < kOperationsOfTree && done < total; k++, done++) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", tree " + std::to_string(tree) + ", operation " + std::to_string(k) + ", isa " +
                   isas[tree % isas.size()]);
      ASSERT_TRUE(walked.step());
    }
  }
  for (const auto &[operation, count] : seen) std::printf("  %-12s %zu\n", operation.c_str(), count);
  for (const char *operation : {"append", "clone", "rewind", "save", "restore", "drop", "batch of 1", "batch of 8"})
    EXPECT_GE(seen[operation], total / 200) << operation << " was hardly drawn";
  for (const char *kind : {"tree of GGUF", "tree of a checkpoint"})
    EXPECT_GE(seen[kind], total / kOperationsOfTree / 10) << kind << " was hardly drawn";
}

}  // namespace proofinfer_test
