// Random models, schedules and neighbours: the logits of every session, on any kernel set, with any threads, alone or in batches, are those of
// the scalar kernels on one thread alone, one token at a time. Prints what it drew. PROOFINFER_PROPERTY_SEED replays a seed,
// PROOFINFER_PROPERTY_COUNT changes the number of combinations.
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

constexpr uint64_t kDefaultSeed = 20260131;
constexpr uint64_t kDefaultCount = 2016;
constexpr size_t kCombinationsPerModel = 12;

struct Drawn {
  Shape shape;
  int32_t group_size = 0;  // 0: float32
  std::vector<uint8_t> file;
  bool has_minus_128 = false;
  std::string type = "f32";
  bool own_head_size = false;  // GGUF: dim is not n_heads * head_size
};

// A GGUF file of one element type or of three, tensor by tensor.
Drawn draw_gguf(Random &random) {
  GgufToy toy;
  auto draw_type = [&random] { return std::string(kGgufElements[random.below(std::size(kGgufElements))].name); };
  toy.types = {draw_type()};
  bool mixed = random.chance(40);
  while (mixed && toy.types.size() < 3) toy.types.push_back(draw_type());
  uint32_t block = 1;  // columns are whole blocks of every type
  for (const std::string &type : toy.types) block = std::max(block, uint32_t(gguf_element_named(type).columns));
  toy.n_kv_heads = random.pick({1u, 2u, 3u});
  toy.n_heads = toy.n_kv_heads * random.pick({1u, 2u, 3u});
  toy.head_size = block == 1 ? random.pick({2u, 6u, 10u, 16u}) : block / (block % toy.n_heads == 0 ? toy.n_heads : 1);
  toy.dim = toy.head_size * toy.n_heads;
  Drawn d;
  d.own_head_size = random.chance(40);
  if (d.own_head_size) toy.dim = block == 1 ? uint32_t(random.between(3, 50)) : block;
  toy.hidden_dim = block == 1 ? uint32_t(random.between(1, 70)) : block;
  toy.n_layers = block == 256 ? 1 : random.pick({1u, 2u});
  toy.vocab_size = uint32_t(random.between(5, 60));
  toy.context_length = random.chance(35) ? uint32_t(random.between(65, 140)) : uint32_t(random.between(8, 40));
  if (block == 256) toy.context_length = std::min(toy.context_length, 20u);  // or the wide rows would take most of the time
  toy.shared_classifier = random.chance(60);
  toy.epsilon = random.pick({1e-5f, 1e-6f, 0.01f});
  toy.rope_base = random.pick({10000.0f, 100000.0f, 500000.0f});
  if (random.chance(30)) toy.rope[0] = 4.0f;
  if (random.chance(30)) toy.rope[1] = 1.0f, toy.rope[2] = 8.0f;
  d.file = toy_gguf(toy, random.next()).bytes();
  d.type = mixed ? "mixed" : toy.types[0];
  d.shape = {int32_t(toy.dim),           int32_t(toy.hidden_dim), int32_t(toy.n_layers),
             int32_t(toy.n_heads),       int32_t(toy.n_kv_heads), int32_t(toy.vocab_size) * (toy.shared_classifier ? 1 : -1),
             int32_t(toy.context_length)};
  return d;
}

Drawn draw_model(Random &random) {
  Drawn d;
  int32_t head_size = random.pick({2, 2, 4, 6, 8, 10, 16, 18});
  int32_t n_kv_heads = random.pick({1, 1, 2, 3});
  int32_t kv_mul = random.pick({1, 2, 3, 4});
  if (random.chance(50)) d.group_size = random.pick({1, 2, 3, 4, 6, 8, 12, 16});
  if (d.group_size) {  // a group divides dim = head_size * heads
    head_size = random.pick({2, 4, 8, 12});
    while (head_size * n_kv_heads * kv_mul % d.group_size != 0) kv_mul++;
  }
  d.shape.n_heads = n_kv_heads * kv_mul;
  d.shape.n_kv_heads = n_kv_heads;
  d.shape.dim = head_size * d.shape.n_heads;
  d.shape.hidden_dim = int32_t(random.between(1, 70));
  if (d.group_size) d.shape.hidden_dim = d.group_size * int32_t(random.between(1, 8));
  d.shape.n_layers = int32_t(random.between(1, 2));
  d.shape.vocab_size = int32_t(random.between(5, 60)) * (random.chance(30) ? -1 : 1);
  d.shape.seq_len = random.chance(35) ? int32_t(random.between(65, 140)) : int32_t(random.between(8, 40));
  uint64_t seed = random.next();
  d.file = d.group_size ? version2_checkpoint(d.shape, seed, d.group_size) : legacy_checkpoint(d.shape, seed);
  if (d.group_size) d.type = "groups";
  if (d.group_size && random.chance(50)) {
    // Some int8 weights of the embedding become -128, which no quantizer writes and every kernel must take.
    size_t begin = 256 + 4 * size_t(d.shape.dim) * (2 * size_t(d.shape.n_layers) + 1);
    size_t count = size_t(d.shape.vocab()) * size_t(d.shape.dim);
    for (size_t i = 0; i < count; i += 1 + random.below(20)) d.file[begin + i] = 0x80;
    d.has_minus_128 = true;
  }
  return d;
}

Model open_with(const std::vector<uint8_t> &file, const std::string &isa, int64_t threads) {
  Options options = make_options();
  set_text(options, "isa", isa);
  set(options, "threads", threads);
  set_u64(options, "share_from_bytes", 0);  // these models are so small that threads would never share them
  return open_model(file, options.get());
}

using Rows = std::vector<std::vector<float>>;

// Tokens of several sequences, and their logits computed the plain way.
struct Expected {
  std::vector<std::vector<int32_t>> tokens;
  std::vector<Rows> logits;
};

Expected expect_plain(const Drawn &d, Random &random, size_t sequences) {
  Expected e;
  Model model = open_with(d.file, "scalar", 1);
  for (size_t s = 0; model && s < sequences; s++) {
    size_t length = random.chance(60) ? size_t(d.shape.seq_len) : random.between(1, size_t(d.shape.seq_len));
    std::vector<int32_t> tokens;
    Rows rows;
    Session session = make_session(model);
    for (size_t i = 0; i < length; i++) {
      tokens.push_back(int32_t(random.below(size_t(d.shape.vocab()))));
      EXPECT_TRUE(append(session, {tokens.back()}, PROOFINFER_LOGITS_LAST).ok());
      rows.push_back(logits(session, i));
    }
    e.tokens.push_back(std::move(tokens));
    e.logits.push_back(std::move(rows));
  }
  return e;
}

// One combination: sessions that walk through their sequences in appends and batches of random size, with rewinds.
class Walk {
 public:
  Walk(const Model &model, const Expected &expected, Random &random, size_t sessions) : expected_(expected), random_(random) {
    proofinfer_batch *made = nullptr;
    EXPECT_TRUE(answer_of(proofinfer_batch_create, model.get(), size_t(40), nullptr, &made).ok());
    batch_ = Batch(made);
    for (size_t i = 0; i < sessions; i++) sessions_.push_back(make_session(model));
  }

  bool run() {
    for (size_t steps = 0; steps < 400 && left(); steps++)
      if (!(random_.chance(60) && sessions_.size() > 1 ? batch_step() : append_step())) return false;
    return true;
  }
  bool split() const { return split_; }
  bool batched() const { return batched_; }

 private:
  size_t position(size_t i) const { return proofinfer_session_position(sessions_[i].get()); }
  size_t length(size_t i) const { return expected_.tokens[i].size(); }
  bool left() const {
    for (size_t i = 0; i < sessions_.size(); i++)
      if (position(i) < length(i)) return true;
    return false;
  }

  bool same(size_t i, size_t at) const {
    std::vector<float> got = logits(sessions_[i], at);
    const std::vector<float> &want = expected_.logits[i][at];
    if (got.size() == want.size() && std::memcmp(got.data(), want.data(), got.size() * sizeof(float)) == 0) return true;
    ADD_FAILURE() << "session " << i << " of " << sessions_.size() << ", position " << at;
    return false;
  }

  bool append_step() {
    size_t i = random_.below(sessions_.size());
    if (position(i) == length(i)) return true;
    if (random_.chance(8) && position(i) > 0) {
      EXPECT_TRUE(answer_of(proofinfer_session_rewind, sessions_[i].get(), random_.below(position(i))).ok());
      return true;
    }
    size_t begin = position(i);
    size_t count = random_.between(1, length(i) - begin);
    split_ = split_ || count < length(i);
    std::vector<int32_t> part(expected_.tokens[i].begin() + std::ptrdiff_t(begin),
                              expected_.tokens[i].begin() + std::ptrdiff_t(begin + count));
    Answer answer = append(sessions_[i], part);
    EXPECT_TRUE(answer.ok()) << answer;
    for (size_t at = begin; answer.ok() && at < begin + count; at++)
      if (!same(i, at)) return false;
    return answer.ok();
  }

  bool batch_step() {
    struct Wanted {
      size_t session, at;
    };
    std::vector<Wanted> wanted;
    size_t rows = 0;
    for (size_t i = 0; i < sessions_.size(); i++) {
      if (random_.chance(25)) continue;
      size_t count = random_.chance(70) ? 1 : random_.between(1, 4);
      for (size_t k = 0; k < count && position(i) + k < length(i) && rows < 40; k++, rows++) {
        bool want = random_.chance(80);
        Answer answer =
            answer_of(proofinfer_batch_add, batch_.get(), sessions_[i].get(), expected_.tokens[i][position(i) + k], int32_t(want));
        EXPECT_TRUE(answer.ok()) << answer;
        if (want) wanted.push_back({i, position(i) + k});
      }
    }
    batched_ = batched_ || rows > 1;
    Answer answer = answer_of(proofinfer_batch_evaluate, batch_.get(), nullptr);
    EXPECT_TRUE(answer.ok()) << answer;
    for (const Wanted &w : wanted)
      if (!same(w.session, w.at)) return false;
    return answer.ok();
  }

  const Expected &expected_;
  Random &random_;
  std::vector<Session> sessions_;
  Batch batch_;
  bool split_ = false, batched_ = false;
};

}  // namespace

TEST(Isas, any_combination_gives_the_bits_of_scalar_alone) {
  uint64_t seed = from_environment("PROOFINFER_PROPERTY_SEED", kDefaultSeed);
  uint64_t total = from_environment("PROOFINFER_PROPERTY_COUNT", kDefaultCount);
  std::printf("seed %llu, %llu combinations\n", (unsigned long long)seed, (unsigned long long)total);
  std::vector<std::string> isas = available_isas();
  std::map<std::string, size_t> histogram;
  for (uint64_t drawn = 0; drawn < total;) {
    Random random(seed ^ (drawn / kCombinationsPerModel * 0x2545F4914F6CDD1Du));
    Drawn d = random.chance(25) ? draw_gguf(random) : draw_model(random);
    Expected expected = expect_plain(d, random, 8);
    for (size_t k = 0; k < kCombinationsPerModel && drawn < total; k++, drawn++) {
      const std::string &isa = isas[drawn % isas.size()];
      int64_t threads = random.pick({1, 2, 3, 7});
      size_t sessions = random.between(1, 8);
      SCOPED_TRACE("seed " + std::to_string(seed) + ", combination " + std::to_string(drawn) + ": " + isa + ", threads " +
                   std::to_string(threads) + ", sessions " + std::to_string(sessions) + ", dim " + std::to_string(d.shape.dim) +
                   ", hidden_dim " + std::to_string(d.shape.hidden_dim) + ", group_size " + std::to_string(d.group_size) + ", type " +
                   d.type);
      Model model = open_with(d.file, isa, threads);
      ASSERT_TRUE(model);
      Walk walk(model, expected, random, sessions);
      ASSERT_TRUE(walk.run());
      histogram["isa " + isa]++;
      histogram["sessions " + std::to_string(sessions)]++;
      histogram["threads " + std::string(threads > 1 ? "> 1" : "1")]++;
      histogram[d.type == "groups" || d.type == "f32" ? "type " + d.type : "type of GGUF"]++;
      histogram["head size of its own"] += d.own_head_size;
      histogram["head size 2"] += d.shape.head_size() == 2;
      histogram["rows not divisible by 16"] += d.shape.dim % 16 || d.shape.hidden_dim % 16 || d.shape.vocab() % 16;
      histogram["group size not divisible by 4"] += d.group_size % 4 != 0;
      histogram["weights of -128"] += d.has_minus_128;
      histogram["heads grouped (GQA)"] += d.shape.n_kv_heads > 1 && d.shape.n_kv_heads < d.shape.n_heads;
      histogram["heads grouped (MQA)"] += d.shape.n_kv_heads == 1 && d.shape.n_heads > 1;
      histogram["context over 64"] += d.shape.seq_len > 64;
      histogram["separate classifier"] += !d.shape.shared_classifier();
      histogram["split"] += walk.split();
      histogram["batched"] += walk.batched();
    }
  }
  for (const auto &[stratum, count] : histogram) {
    std::printf("  %-32s %zu\n", stratum.c_str(), count);
    EXPECT_GE(count, total / 100) << stratum << " was hardly drawn";
  }
}

}  // namespace proofinfer_test
