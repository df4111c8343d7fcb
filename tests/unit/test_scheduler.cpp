// Scheduler: what a step may hold, in which order pieces come, how generations leave, and what is refused. That outputs are those of running alone
// is also drawn at random in differential.scheduler.
#include "model/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/scheduling.h"

namespace proofinfer_test {

namespace {

using Outputs = std::map<uint64_t, Output>;

Job job_of(size_t prompt, int64_t max_tokens, uint64_t seed = 1) {
  Job job;
  job.prompt = small_tokens(prompt);
  job.temperature = 1.0;
  job.seed = seed;
  job.max_tokens = max_tokens;
  return job;
}

Options scheduler_options(int64_t max_generations, int64_t prefill_chunk) {
  Options options = make_options();
  set(options, "max_generations", max_generations);
  set(options, "prefill_chunk", prefill_chunk);
  return options;
}

// A generation of the caller's with its parts at hand.
struct Own {
  Session session;
  Sampler sampler;
  Generation generation;
  Own(const SmallWorld &world, const Job &job) {
    Options options = job.options();
    session = make_session(world.model, options.get());
    sampler = make_sampler(small_shape().vocab(), options.get());
    generation = make_generation(session, world.tokenizer, sampler, job.prompt, options.get());
  }
  uint64_t add(const Scheduler &scheduler, Answer *answer = nullptr) const {
    uint64_t id = 0;
    Answer got = answer_of(proofinfer_scheduler_add, scheduler.get(), generation.get(), &id);
    EXPECT_EQ(id != 0, got.ok());
    if (answer)
      *answer = got;
    else
      EXPECT_TRUE(got.ok()) << got;
    return id;
  }
};

void cancel(const Scheduler &scheduler, uint64_t id) {
  Answer answer = answer_of(proofinfer_scheduler_cancel, scheduler.get(), id);
  EXPECT_TRUE(answer.ok()) << answer;
}

}  // namespace

TEST(Scheduler, generations_give_what_they_give_alone) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer);
  std::map<uint64_t, Job> jobs;
  for (size_t i = 0; i < 10; i++) {
    Job job = job_of(1 + i * 9, int64_t(5 + i), i);
    jobs[submit(scheduler, job)] = job;
  }
  Outputs outputs;
  drain(scheduler, &outputs);
  for (const auto &[id, job] : jobs) EXPECT_EQ(outputs[id], run_alone(world.model, world.tokenizer, job));
}

TEST(Scheduler, a_step_holds_one_token_of_each_that_decodes_and_one_chunk_of_prompts) {
  SmallWorld world;
  for (size_t chunk : {1, 10, 100}) {
    Scheduler scheduler = make_scheduler(world.model, world.tokenizer, scheduler_options(16, int64_t(chunk)).get());
    Outputs outputs;
    std::vector<uint64_t> running;
    for (size_t i = 0; i < 4; i++) running.push_back(submit(scheduler, job_of(1, 450, i)));
    EXPECT_EQ(step(scheduler), 4u);
    for (size_t i = 0; i < 8; i++) submit(scheduler, job_of(90, 1, i));
    for (size_t steps = 0, prompt_tokens = 0; prompt_tokens < 8 * 90 && steps < 400; steps++) {
      while (take(scheduler, &outputs)) {
      }
      // A prompt's last token may come alone: it decodes then.
      size_t rows = step(scheduler);
      prompt_tokens += rows - 4;
      EXPECT_LE(rows, 4 + chunk + 8);
      for (uint64_t id : running) EXPECT_EQ(take(scheduler, &outputs, id), id) << "not one step without a token";
    }
  }
}

TEST(Scheduler, prompts_that_wait_take_turns) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer, scheduler_options(8, 10).get());
  uint64_t long_one = submit(scheduler, job_of(300, 1));
  step(scheduler);
  uint64_t short_one = submit(scheduler, job_of(20, 1)), other = submit(scheduler, job_of(15, 1));
  Outputs outputs;
  for (int i = 0; i < 6; i++) {
    EXPECT_EQ(step(scheduler), 10u);
    while (take(scheduler, &outputs)) {
    }
  }
  EXPECT_EQ(outputs[short_one].reason, PROOFINFER_STOP_LENGTH)
      << "behind a long prompt a short one is done in a round for each of its chunks";
  EXPECT_EQ(outputs[other].reason, PROOFINFER_STOP_LENGTH);
  EXPECT_EQ(outputs.count(long_one), 0u);
}

TEST(Scheduler, a_prompt_that_leaves_room_in_the_chunk_shares_it) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer, scheduler_options(8, 30).get());
  for (size_t i = 0; i < 3; i++) submit(scheduler, job_of(10, 1, i));
  EXPECT_EQ(step(scheduler), 30u);
  Outputs outputs;
  for (size_t i = 0; i < 3; i++) EXPECT_NE(take(scheduler, &outputs), 0u);
  EXPECT_EQ(proofinfer_scheduler_count(scheduler.get()), 0u);
}

TEST(Scheduler, a_prompt_in_the_last_of_three_places_is_read_at_once) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer, scheduler_options(3, 10).get());
  for (size_t prompt : {1, 1, 4}) submit(scheduler, job_of(prompt, 5));
  EXPECT_EQ(step(scheduler), 6u);
}

TEST(Scheduler, those_that_decode_take_nothing_from_the_chunk) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer, scheduler_options(8, 10).get());
  for (size_t i = 0; i < 3; i++) submit(scheduler, job_of(1, 20, i));
  EXPECT_EQ(step(scheduler), 3u);
  submit(scheduler, job_of(40, 1));
  Outputs outputs;
  for (int i = 0; i < 4; i++) {
    while (take(scheduler, &outputs)) {
    }
    EXPECT_EQ(step(scheduler), 3u + 10);
  }
}

TEST(Scheduler, a_piece_that_is_not_taken_holds_back_its_own_generation_only) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer);
  Job slow = job_of(5, 20, 1), fast = job_of(7, 20, 2);
  uint64_t slow_id = submit(scheduler, slow), fast_id = submit(scheduler, fast);
  Outputs outputs;
  EXPECT_EQ(step(scheduler), 12u);
  for (int i = 0; i < 19; i++) {
    EXPECT_EQ(take(scheduler, &outputs, fast_id), fast_id);
    EXPECT_EQ(take(scheduler, &outputs, fast_id), 0u) << "one piece a step";
    EXPECT_EQ(step(scheduler), 1u);
  }
  EXPECT_EQ(take(scheduler, &outputs, fast_id), fast_id);
  EXPECT_EQ(step(scheduler), 0u) << "nothing to do until the piece is taken";
  drain(scheduler, &outputs);
  EXPECT_EQ(outputs[slow_id], run_alone(world.model, world.tokenizer, slow));
  EXPECT_EQ(outputs[fast_id], run_alone(world.model, world.tokenizer, fast));
}

TEST(Scheduler, pieces_of_any_come_in_turns) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer);
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < 3; i++) ids.push_back(submit(scheduler, job_of(1, 10, i)));
  Outputs outputs;
  for (int i = 0; i < 6; i++) {
    step(scheduler);
    EXPECT_EQ(take(scheduler, &outputs), ids[size_t(i) % 3]) << "though each of them has one";
  }
}

TEST(Scheduler, a_cancelled_one_leaves_with_its_next_piece_and_the_others_notice_nothing) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer, scheduler_options(8, 10).get());
  Job kept = job_of(5, 30, 1);
  uint64_t kept_id = submit(scheduler, kept), decoding = submit(scheduler, job_of(3, 30, 2)),
           waiting = submit(scheduler, job_of(200, 30, 3));
  Outputs outputs;
  for (int i = 0; i < 3; i++) {
    step(scheduler);
    while (take(scheduler, &outputs)) {
    }
  }
  step(scheduler);
  uint64_t before = proofinfer_scheduler_memory_bytes(scheduler.get());
  for (uint64_t id : {decoding, waiting}) {
    cancel(scheduler, id);
    cancel(scheduler, id);
    EXPECT_EQ(take(scheduler, &outputs, id), id);
    EXPECT_EQ(outputs[id].reason, PROOFINFER_STOP_CANCELLED);
    cancel(scheduler, id);
    EXPECT_EQ(take(scheduler, &outputs, id), 0u);
  }
  EXPECT_EQ(outputs[decoding].tokens.size(), 3u) << "the piece that was ready is dropped";
  EXPECT_LT(proofinfer_scheduler_memory_bytes(scheduler.get()), before) << "its memory is given back";
  uint64_t later = submit(scheduler, job_of(2, 3, 4));
  EXPECT_GT(later, waiting);
  drain(scheduler, &outputs);
  EXPECT_EQ(outputs[kept_id], run_alone(world.model, world.tokenizer, kept));
  EXPECT_EQ(outputs[later], run_alone(world.model, world.tokenizer, job_of(2, 3, 4)));
  for (uint64_t id : {uint64_t(0), later + 1, UINT64_MAX})
    EXPECT_EQ(answer_of(proofinfer_scheduler_cancel, scheduler.get(), id).status, PROOFINFER_E_ARGUMENT);
  const Scheduler fresh = make_scheduler(world.model, world.tokenizer);
  EXPECT_EQ(answer_of(proofinfer_scheduler_cancel, fresh.get(), uint64_t(1)).status, PROOFINFER_E_ARGUMENT);
}

TEST(Scheduler, a_cancelled_step_can_be_repeated) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer);
  Job job = job_of(20, 10);
  uint64_t id = submit(scheduler, job);
  proofinfer_cancel *raw = nullptr;
  ASSERT_TRUE(answer_of(proofinfer_cancel_create, &raw).ok());
  Cancel stop(raw);
  proofinfer_cancel_request(stop.get());
  Outputs outputs;
  while (outputs[id].reason == PROOFINFER_STOP_NONE) {
    size_t rows = 77;
    EXPECT_EQ(answer_of(proofinfer_scheduler_step, scheduler.get(), stop.get(), &rows).status, PROOFINFER_E_CANCELLED);
    EXPECT_EQ(rows, 0u);
    EXPECT_EQ(take(scheduler, &outputs), 0u);
    step(scheduler);
    take(scheduler, &outputs);
  }
  EXPECT_EQ(outputs[id], run_alone(world.model, world.tokenizer, job));
}

TEST(Scheduler, a_buffer_too_small_keeps_the_piece) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer);
  Job job = job_of(5, 50, 3);
  uint64_t id = submit(scheduler, job);
  Outputs outputs;
  size_t refusals = 0;
  while (proofinfer_scheduler_count(scheduler.get()) > 0) {
    step(scheduler);
    uint64_t whose = 0;
    int32_t token = -5, reason = -5;
    size_t needed = 0;
    Answer answer =
        answer_of(proofinfer_scheduler_next, scheduler.get(), uint64_t(0), &whose, &token, nullptr, size_t(0), &needed, &reason);
    EXPECT_EQ(whose, id);
    if (answer.ok()) {
      outputs[id].tokens.push_back(token);
      outputs[id].reason = reason;
    } else {
      refusals++;
      EXPECT_EQ(answer.status, PROOFINFER_E_BUFFER);
      EXPECT_GT(needed, 0u);
      EXPECT_EQ(token, -1);
      EXPECT_EQ(take(scheduler, &outputs), id);
    }
  }
  EXPECT_GT(refusals, 0u);
  EXPECT_EQ(outputs[id], run_alone(world.model, world.tokenizer, job));
}

TEST(Scheduler, more_than_max_generations_are_refused_until_one_has_left) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer, scheduler_options(2, 32).get());
  submit(scheduler, job_of(2, 1)), submit(scheduler, job_of(2, 1));
  Answer answer;
  submit(scheduler, job_of(2, 1), &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_LIMIT);
  EXPECT_EQ(answer.message, "the scheduler holds its max_generations 2: one more needs one of them to end and its end to be taken");
  EXPECT_EQ(proofinfer_scheduler_count(scheduler.get()), 2u);
  step(scheduler);
  submit(scheduler, job_of(2, 1), &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_LIMIT) << "its end is not taken";
  Outputs outputs;
  take(scheduler, &outputs);
  submit(scheduler, job_of(2, 1));
}

TEST(Scheduler, everything_it_makes_counts_against_its_limit_and_a_refusal_names_need_and_rest) {
  SmallWorld world;
  CountingAllocator allocator;
  Options options = scheduler_options(64, 8);
  allocator.install(options);
  Job job = job_of(10, 100);
  {
    Scheduler measured = make_scheduler(world.model, world.tokenizer, options.get());
    uint64_t empty = proofinfer_scheduler_memory_bytes(measured.get());
    EXPECT_EQ(allocator.held_bytes(), empty);
    submit(measured, job);
    uint64_t one = proofinfer_scheduler_memory_bytes(measured.get()) - empty;
    EXPECT_EQ(allocator.held_bytes(), empty + one);
    measured.reset();
    EXPECT_EQ(allocator.held_blocks(), 0u);

    uint64_t limit = empty + one * 3 + one / 2;
    set_u64(options, "memory_limit_bytes", limit);
    Scheduler scheduler = make_scheduler(world.model, world.tokenizer, options.get());
    for (int i = 0; i < 3; i++) submit(scheduler, job);
    uint64_t held = allocator.held_bytes();
    Answer answer;
    submit(scheduler, job, &answer);
    EXPECT_EQ(answer.status, PROOFINFER_E_LIMIT);
    EXPECT_EQ(answer.message, "a generation with room for 110 positions needs at least " + std::to_string(one) + " bytes; " +
                                  std::to_string(one / 2) + " of memory_limit_bytes " + std::to_string(limit) + " are available");
    EXPECT_EQ(allocator.held_bytes(), held) << "nothing is kept";
    EXPECT_LE(allocator.peak_bytes(), limit);
    Outputs outputs;
    drain(scheduler, &outputs);
    for (const auto &[id, out] : outputs) EXPECT_EQ(out, run_alone(world.model, world.tokenizer, job));
    submit(scheduler, job);
  }
  EXPECT_EQ(allocator.held_blocks(), 0u) << "and one that was still inside";
  for (uint64_t limit : {uint64_t(1), uint64_t(40000)}) {
    set_u64(options, "memory_limit_bytes", limit);
    Answer answer;
    make_scheduler(world.model, world.tokenizer, options.get(), &answer);
    EXPECT_EQ(answer.status, PROOFINFER_E_LIMIT);
    EXPECT_TRUE(answer.says("memory_limit_bytes")) << answer;
  }
}

// What is needed is always more than what is there, and each retry with what was said gets further.
TEST(Scheduler, following_its_refusals_ends_in_room_enough) {
  SmallWorld world;
  uint64_t limit = 1;
  for (int tries = 0;; tries++) {
    ASSERT_LT(tries, 40);
    Options options = scheduler_options(64, 8);
    set_u64(options, "memory_limit_bytes", limit);
    Answer answer;
    Scheduler scheduler = make_scheduler(world.model, world.tokenizer, options.get(), &answer);
    if (answer.status == PROOFINFER_OK) break;
    const std::string needs = "needs at least ";
    size_t at = answer.message.find(needs);
    uint64_t needed = at == std::string::npos ? limit * 2 : std::stoull(answer.message.substr(at + needs.size()));
    ASSERT_GT(needed, limit) << answer;
    limit = needed;
  }
}

TEST(Scheduler, room_is_reserved_for_what_max_tokens_can_use) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer);
  uint64_t before = proofinfer_scheduler_memory_bytes(scheduler.get());
  submit(scheduler, job_of(10, 20));
  uint64_t small = proofinfer_scheduler_memory_bytes(scheduler.get()) - before;
  submit(scheduler, job_of(10, 0));
  EXPECT_GT(proofinfer_scheduler_memory_bytes(scheduler.get()) - before, 3 * small);
}

TEST(Scheduler, what_cannot_be_submitted_is_refused_as_a_generation_would_be) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer);
  Answer answer;
  submit(scheduler, job_of(0, 1), &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_STATE);
  submit(scheduler, job_of(kSmallContext + 1, 1), &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_CONTEXT);
  Job odd = job_of(3, 1);
  odd.prompt[1] = -1;
  submit(scheduler, odd, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
  odd = job_of(3, 1);
  odd.context_length = kSmallContext + 1;
  submit(scheduler, odd, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
  EXPECT_EQ(proofinfer_scheduler_count(scheduler.get()), 0u);
  SmallWorld other;
  Own stranger(other, job_of(3, 1));
  stranger.add(scheduler, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
  Tokenizer too_small = open_tokenizer(tokenizer_file(small_pieces()), small_shape().vocab() - 1);
  make_scheduler(world.model, too_small, nullptr, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
  submit(scheduler, job_of(3, 1));
}

TEST(Scheduler, an_added_generation_can_be_used_between_steps_and_afterwards) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer);
  Job job = job_of(6, 30, 5);
  Own own(world, job);
  uint64_t id = own.add(scheduler);
  Outputs outputs;
  for (int i = 0; i < 5; i++) {
    step(scheduler);
    ASSERT_EQ(take(scheduler, &outputs), id);
  }
  EXPECT_EQ(proofinfer_session_position(own.session.get()), 10u);
  int32_t token = -1, reason = -1;
  char text[64];
  size_t needed = 0;
  ASSERT_TRUE(answer_of(proofinfer_generation_next, own.generation.get(), nullptr, &token, text, sizeof(text), &needed, &reason).ok());
  outputs[id].tokens.push_back(token);
  outputs[id].text.append(text, needed);
  step(scheduler);
  take(scheduler, &outputs);
  cancel(scheduler, id);
  EXPECT_EQ(take(scheduler, &outputs), id);
  EXPECT_EQ(outputs[id].reason, PROOFINFER_STOP_CANCELLED);
  outputs[id].reason = PROOFINFER_STOP_NONE;
  uint64_t again = own.add(scheduler);
  EXPECT_NE(again, id);
  outputs[again] = outputs[id];
  drain(scheduler, &outputs);
  EXPECT_EQ(outputs[again], run_alone(world.model, world.tokenizer, job));
  EXPECT_EQ(own.add(scheduler), again + 1) << "one that has ended says so again";
  take(scheduler, &outputs);
  EXPECT_EQ(outputs[again + 1].reason, PROOFINFER_STOP_LENGTH);
  EXPECT_TRUE(outputs[again + 1].tokens.empty());
}

TEST(Scheduler, a_forced_token_comes_up_in_the_next_step) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer);
  Own own(world, job_of(6, 3));
  uint64_t id = own.add(scheduler);
  ASSERT_TRUE(answer_of(proofinfer_generation_force, own.generation.get(), 3 + 'x').ok());
  Outputs outputs;
  drain(scheduler, &outputs);
  EXPECT_EQ(outputs[id].tokens[0], 3 + 'x');
  EXPECT_EQ(outputs[id].text[0], 'x');
}

TEST(Scheduler, what_is_wrong_with_one_generation_ends_that_one) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer);
  Job job = job_of(6, 20, 1);
  uint64_t good = submit(scheduler, job);
  Own moved(world, job_of(6, 20, 2));
  uint64_t bad = moved.add(scheduler);
  Outputs outputs;
  step(scheduler);
  while (take(scheduler, &outputs)) {
  }
  ASSERT_TRUE(append(moved.session, {5}).ok());
  drain(scheduler, &outputs);
  EXPECT_EQ(outputs[bad].answer.status, PROOFINFER_E_STATE);
  EXPECT_EQ(outputs[bad].answer.message, "the session stands at position 7; the generation left it at 6");
  EXPECT_EQ(outputs[good], run_alone(world.model, world.tokenizer, job));

  Model nan = open_model(checkpoint_with_nan());
  Scheduler other = make_scheduler(nan, world.tokenizer);
  uint64_t id = submit(other, job);
  outputs.clear();
  drain(other, &outputs);
  EXPECT_EQ(outputs[id].answer.status, PROOFINFER_E_NOT_FINITE);
}

TEST(Scheduler, a_generation_that_is_in_use_elsewhere_waits_for_the_next_step) {
  SmallWorld world;
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer);
  Job job = job_of(6, 5, 1);
  Own own(world, job);
  uint64_t id = own.add(scheduler);
  Outputs outputs;
  proofinfer::BusyFlag *session = reinterpret_cast<proofinfer::Session *>(own.session.get())->busy();
  proofinfer::BusyFlag *sampler = reinterpret_cast<proofinfer::Sampler *>(own.sampler.get())->busy();
  while (outputs[id].reason == PROOFINFER_STOP_NONE) {
    size_t position = proofinfer_session_position(own.session.get());
    ASSERT_TRUE(session->try_enter());
    EXPECT_EQ(step(scheduler), 0u);
    session->leave();
    ASSERT_TRUE(sampler->try_enter());
    EXPECT_GT(step(scheduler), 0u);
    EXPECT_EQ(take(scheduler, &outputs), 0u) << "evaluated, not chosen";
    sampler->leave();
    EXPECT_GT(proofinfer_session_position(own.session.get()), position);
    EXPECT_EQ(step(scheduler), 0u) << "nothing left to evaluate";
    EXPECT_EQ(take(scheduler, &outputs), id);
  }
  EXPECT_EQ(outputs[id], run_alone(world.model, world.tokenizer, job));
}

TEST(Scheduler, a_second_thread_is_told_and_parts_may_be_freed_in_any_order) {
  SmallWorld world;
  Job job = job_of(6, 5, 1);
  Output expected = run_alone(world.model, world.tokenizer, job);
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer);
  proofinfer::BusyFlag *busy = reinterpret_cast<proofinfer::Scheduler *>(scheduler.get())->busy();
  ASSERT_TRUE(busy->try_enter());
  size_t rows = 0, needed = 0;
  uint64_t whose = 0;
  int32_t token = 0, reason = 0;
  EXPECT_EQ(answer_of(proofinfer_scheduler_step, scheduler.get(), nullptr, &rows).status, PROOFINFER_E_BUSY);
  EXPECT_EQ(answer_of(proofinfer_scheduler_next, scheduler.get(), uint64_t(0), &whose, &token, nullptr, size_t(0), &needed, &reason).status,
            PROOFINFER_E_BUSY);
  uint64_t id = submit(scheduler, job);
  cancel(scheduler, submit(scheduler, job));
  busy->leave();
  world.model.reset();
  world.tokenizer.reset();
  Outputs outputs;
  drain(scheduler, &outputs);
  EXPECT_EQ(outputs[id], expected);
}

TEST(Scheduler, submissions_and_cancellations_from_other_threads_during_steps) {
  Options options = make_options();
  set(options, "threads", 2);
  set_u64(options, "share_from_bytes", 0);
  SmallWorld world(options.get());
  std::vector<Output> alone;
  for (uint64_t seed = 0; seed < 4; seed++) alone.push_back(run_alone(world.model, world.tokenizer, job_of(9, 12, seed)));
  Scheduler scheduler = make_scheduler(world.model, world.tokenizer, scheduler_options(6, 4).get());
  constexpr int kEach = 40;
  std::atomic<int> working{3};
  std::map<uint64_t, uint64_t> seeds[3];
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 3; t++)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach;) {
        Answer answer;
        uint64_t seed = (t + uint64_t(i)) % 4, id = submit(scheduler, job_of(9, 12, seed), &answer);
        if (answer.ok()) {
          seeds[t][id] = seed;
          if (i % 3 == 0) cancel(scheduler, id);
          i++;
        } else {
          EXPECT_EQ(answer.status, PROOFINFER_E_LIMIT) << answer;
          std::this_thread::yield();
        }
      }
      working--;
    });
  Outputs outputs;
  while (working > 0 || proofinfer_scheduler_count(scheduler.get()) > 0) {
    step(scheduler);
    while (take(scheduler, &outputs)) {
    }
  }
  for (std::thread &thread : threads) thread.join();
  drain(scheduler, &outputs);
  size_t ended = 0;
  for (const auto &of_thread : seeds)
    for (const auto &[id, seed] : of_thread) {
      ended++;
      if (outputs[id].reason == PROOFINFER_STOP_CANCELLED)
        EXPECT_TRUE(outputs[id].begins(alone[seed]));
      else
        EXPECT_EQ(outputs[id], alone[seed]);
    }
  EXPECT_EQ(ended, size_t(3 * kEach));
}

}  // namespace proofinfer_test
