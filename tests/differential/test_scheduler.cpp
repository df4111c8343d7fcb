// Sixty-four generations that come, wait, decode, are cancelled and leave as a seed draws it: on any kernel set, with any threads, each one's tokens
// and text are those of running alone. Prints what it drew. PROOFINFER_PROPERTY_SEED replays a seed, PROOFINFER_SCHEDULER_ROUNDS changes the rounds.
#include <gtest/gtest.h>

#include <cstdio>

#include "support/random.h"
#include "support/scheduling.h"

namespace proofinfer_test {

namespace {

constexpr size_t kJobs = 64;
constexpr uint64_t kDefaultSeed = 20260210;
constexpr uint64_t kDefaultRounds = 12;

struct Drawn {
  Job job;
  bool adds = false;                  // with a session of the caller's that holds `held` tokens of the prompt
  size_t held = 0;                    // all of them: there is no prompt
  size_t arrives = 0;                 // the step before which it is submitted
  size_t cancelled_after = SIZE_MAX;  // pieces
  Output alone;
};

Drawn draw(Random &random, int32_t vocab) {
  Drawn d;
  size_t length = random.chance(20) ? random.between(60, 300) : random.between(1, 40);
  for (size_t i = 0; i < length; i++) d.job.prompt.push_back(i == 0 ? 1 : int32_t(random.below(size_t(vocab))));
  d.job.temperature = random.pick({0.0, 0.5, 1.0, 1.5});
  d.job.top_p = random.pick({0.0, 0.5, 0.9});
  d.job.seed = random.next();
  d.job.max_tokens = random.chance(80) ? int64_t(random.between(1, 60)) : 0;
  d.job.context_length = d.job.max_tokens == 0 || random.chance(20) ? int64_t(length + random.below(40)) : 0;
  size_t stops = random.below(4);
  for (size_t i = 0; i < stops; i++) d.job.stop_tokens.push_back(int32_t(random.below(size_t(vocab))));
  d.arrives = random.below(120);
  if (random.chance(20)) d.cancelled_after = random.below(30);
  d.adds = random.chance(30);
  if (d.adds) d.held = random.below(length + 1);
  return d;
}

// A generation of the caller's, whose session holds a part of the prompt already.
Generation make_continued(const SmallWorld &world, const Drawn &d) {
  Options options = d.job.options();
  Session session = make_session(world.model, options.get());
  auto middle = d.job.prompt.begin() + std::ptrdiff_t(d.held);
  EXPECT_TRUE(append(session, {d.job.prompt.begin(), middle}, PROOFINFER_LOGITS_LAST).ok());
  Sampler sampler = make_sampler(small_shape().vocab(), options.get());
  return make_generation(session, world.tokenizer, sampler, {middle, d.job.prompt.end()}, options.get());
}

class Round {
 public:
  Round(const SmallWorld &world, const std::vector<Drawn> &jobs, Random &random) : world_(world), jobs_(jobs), random_(random) {
    Options options = make_options();
    chunk_ = random.pick<size_t>({1, 5, 32, 200});
    slots_ = random.pick<size_t>({1, 7, 64});
    set(options, "prefill_chunk", int64_t(chunk_));
    set(options, "max_generations", int64_t(slots_));
    scheduler_ = make_scheduler(world.model, world.tokenizer, options.get());
  }

  void run() {
    std::vector<bool> submitted(jobs_.size());
    size_t left = jobs_.size();
    for (size_t now = 0; left > 0 || proofinfer_scheduler_count(scheduler_.get()) > 0; now++) {
      ASSERT_LT(now, 100000u);
      for (size_t i = 0; i < jobs_.size(); i++)
        if (!submitted[i] && jobs_[i].arrives <= now && proofinfer_scheduler_count(scheduler_.get()) < slots_)
          submit_job(i), submitted[i] = true, left--;
      size_t rows = step(scheduler_);
      EXPECT_LE(rows, proofinfer_scheduler_count(scheduler_.get()) + chunk_);
      most_rows_ = std::max(most_rows_, rows);
      cancel_some();
      // Now and then pieces are left where they are.
      while (!random_.chance(3) && take(scheduler_, &outputs_)) {
      }
      cancel_some();
    }
  }

  void check() const {
    for (const auto &[id, job] : job_of_) {
      const Drawn &d = jobs_[job];
      const Output &out = outputs_.at(id);
      SCOPED_TRACE("job " + std::to_string(job));
      if (out.reason == PROOFINFER_STOP_CANCELLED) {
        EXPECT_GE(out.tokens.size(), d.cancelled_after);
        EXPECT_TRUE(out.begins(d.alone)) << out << "\nalone: " << d.alone;
      } else {
        EXPECT_EQ(out, d.alone);
      }
    }
    EXPECT_EQ(job_of_.size(), jobs_.size());
    EXPECT_GE(most_rows_, std::min(chunk_, longest_prompt()));
  }
  size_t most_rows() const { return most_rows_; }
  size_t cancelled() const {
    size_t n = 0;
    for (const auto &[id, out] : outputs_) n += out.reason == PROOFINFER_STOP_CANCELLED;
    return n;
  }

 private:
  void submit_job(size_t i) {
    uint64_t id = 0;
    if (jobs_[i].adds) {
      Generation generation = make_continued(world_, jobs_[i]);
      Answer answer = answer_of(proofinfer_scheduler_add, scheduler_.get(), generation.get(), &id);
      EXPECT_TRUE(answer.ok()) << answer;
    } else {
      id = submit(scheduler_, jobs_[i].job);
    }
    job_of_[id] = i;
    outputs_[id];
  }
  // Of those that nobody cancels, what sessions do not hold yet: where one of these begins, a step has it whole, or as much as a step may take.
  size_t longest_prompt() const {
    size_t longest = 0;
    for (const Drawn &d : jobs_)
      if (d.cancelled_after == SIZE_MAX) longest = std::max(longest, d.job.prompt.size() - d.held);
    return longest;
  }
  void cancel_some() {
    for (const auto &[id, job] : job_of_)
      if (outputs_[id].tokens.size() >= jobs_[job].cancelled_after && random_.chance(50)) {
        EXPECT_TRUE(answer_of(proofinfer_scheduler_cancel, scheduler_.get(), id).ok());
      }
  }

  const SmallWorld &world_;
  const std::vector<Drawn> &jobs_;
  Random &random_;
  size_t chunk_ = 0, slots_ = 0, most_rows_ = 0;
  Scheduler scheduler_;
  std::map<uint64_t, size_t> job_of_;
  std::map<uint64_t, Output> outputs_;
};

}  // namespace

TEST(Scheduler, sixty_four_generations_give_what_each_gives_alone) {
  uint64_t seed = from_environment("PROOFINFER_PROPERTY_SEED", kDefaultSeed);
  uint64_t rounds = from_environment("PROOFINFER_SCHEDULER_ROUNDS", kDefaultRounds);
  std::printf("seed %llu, %llu rounds of %zu generations\n", (unsigned long long)seed, (unsigned long long)rounds, kJobs);
  SmallWorld plain;
  std::vector<std::string> isas = available_isas();
  size_t cancelled = 0, most_rows = 0, tokens = 0;
  for (uint64_t round = 0; round < rounds; round++) {
    Random random(seed + round);
    std::vector<Drawn> jobs;
    for (size_t i = 0; i < kJobs; i++) {
      jobs.push_back(draw(random, small_shape().vocab()));
      jobs.back().alone = run_alone(plain.model, plain.tokenizer, jobs.back().job);
      tokens += jobs.back().alone.tokens.size();
    }
    Options options = make_options();
    const std::string &isa = isas[round % isas.size()];
    int64_t threads = random.pick({1, 2, 3, 7});
    set_text(options, "isa", isa);
    set(options, "threads", threads);
    set_u64(options, "share_from_bytes", 0);
    SmallWorld world(options.get());
    SCOPED_TRACE("seed " + std::to_string(seed + round) + ", " + isa + ", threads " + std::to_string(threads));
    Round r(world, jobs, random);
    r.run();
    r.check();
    if (testing::Test::HasFailure()) return;
    cancelled += r.cancelled();
    most_rows = std::max(most_rows, r.most_rows());
  }
  std::printf("  %zu tokens, %zu generations cancelled, up to %zu rows a step\n", tokens, cancelled, most_rows);
  EXPECT_GT(cancelled, 0u);
}

}  // namespace proofinfer_test
