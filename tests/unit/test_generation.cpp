// Generation: the same tokens and text as the calls it is made of, every stop reason, and nothing lost on the way to a retry.
#include "model/generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "support/small_world.h"

namespace proofinfer_test {

namespace {

using Ids = std::vector<int32_t>;

struct Step {
  Answer answer;
  int32_t token = -5, reason = -5;
  size_t needed = 0;
  std::string text;
};

Step step(const Generation &generation, size_t capacity = 512, proofinfer_cancel *cancel = nullptr) {
  Step s;
  std::string buffer(capacity, '?');
  s.answer = answer_of(proofinfer_generation_next, generation.get(), cancel, &s.token, capacity ? buffer.data() : nullptr, capacity,
                       &s.needed, &s.reason);
  if (s.answer.ok()) s.text = buffer.substr(0, s.needed);
  if (!s.answer.ok()) {
    EXPECT_EQ(s.token, -1);
    EXPECT_EQ(s.reason, PROOFINFER_STOP_NONE);
    EXPECT_EQ(buffer, std::string(capacity, '?')) << "a failure writes nothing";
  }
  return s;
}

struct Story {
  Ids tokens;
  std::string text;
  int32_t reason = PROOFINFER_STOP_NONE;
  bool operator==(const Story &other) const { return tokens == other.tokens && text == other.text && reason == other.reason; }
};

std::ostream &operator<<(std::ostream &out, const Story &run) {
  return out << testing::PrintToString(run.tokens) << " " << testing::PrintToString(run.text) << " reason " << run.reason;
}

// Pulls to the end, at most `most` tokens.
Story pull(const Generation &generation, size_t most = 10000) {
  Story run;
  while (run.tokens.size() < most && run.reason == PROOFINFER_STOP_NONE) {
    Step s = step(generation);
    EXPECT_TRUE(s.answer.ok()) << s.answer;
    if (!s.answer.ok()) break;
    run.tokens.push_back(s.token);
    run.text += s.text;
    run.reason = s.reason;
  }
  return run;
}

struct Choice {
  double temperature = 0.0, top_p = 0.9;
  uint64_t seed = 1;
  int64_t max_tokens = 0, context_length = 0;
  std::optional<Ids> stop_tokens = std::nullopt;  // none: the default

  Options options() const {
    Options made = make_options();
    set_f64(made, "temperature", temperature);
    set_f64(made, "top_p", top_p);
    set_u64(made, "seed", seed);
    set(made, "max_tokens", max_tokens);
    set(made, "context_length", context_length);
    if (stop_tokens) set_tokens(made, "stop_tokens", *stop_tokens);
    return made;
  }
};

// Session, sampler and generation of one choice of options.
struct Rig {
  Options options;
  Session session;
  Sampler sampler;
  Generation generation;

  Rig(const SmallWorld &world, const Choice &choice, const Ids &prompt, Answer *answer = nullptr)
      : options(choice.options()),
        session(make_session(world.model, options.get())),
        sampler(make_sampler(small_shape().vocab(), options.get())),
        generation(make_generation(session, world.tokenizer, sampler, prompt, options.get(), answer)) {}

  size_t position() const { return proofinfer_session_position(session.get()); }
};

// The same with nothing but append, logits, sample and stream.
Story by_hand(const SmallWorld &world, const Choice &choice, const Ids &prompt) {
  Options options = choice.options();
  Session session = make_session(world.model, options.get());
  Sampler sampler = make_sampler(small_shape().vocab(), options.get());
  proofinfer_stream *raw = nullptr;
  EXPECT_TRUE(answer_of(proofinfer_stream_create, world.tokenizer.get(), prompt.back(), &raw).ok());
  Stream stream(raw);
  Ids stop = choice.stop_tokens.value_or(Ids{1});
  Story run;
  Ids next = prompt;
  char buffer[512];
  size_t needed = 0;
  while (run.reason == PROOFINFER_STOP_NONE) {
    EXPECT_TRUE(append(session, next, PROOFINFER_LOGITS_LAST).ok());
    size_t position = proofinfer_session_position(session.get());
    std::vector<float> x = logits(session, position - 1);
    int32_t token = -1;
    EXPECT_TRUE(answer_of(proofinfer_sampler_sample, sampler.get(), x.data(), x.size(), &token).ok());
    run.tokens.push_back(token);
    next = {token};
    bool stops = std::count(stop.begin(), stop.end(), token) > 0;
    if (stops)
      run.reason = PROOFINFER_STOP_TOKEN;
    else if (int64_t(run.tokens.size()) == choice.max_tokens)
      run.reason = PROOFINFER_STOP_LENGTH;
    else if (position == proofinfer_session_context_length(session.get()))
      run.reason = PROOFINFER_STOP_CONTEXT;
    if (stops) break;
    EXPECT_TRUE(answer_of(proofinfer_stream_push, stream.get(), token, buffer, sizeof(buffer), &needed).ok());
    run.text.append(buffer, needed);
  }
  EXPECT_TRUE(answer_of(proofinfer_stream_flush, stream.get(), buffer, sizeof(buffer), &needed).ok());
  run.text.append(buffer, needed);
  return run;
}

}  // namespace

TEST(Generation, yields_what_the_calls_it_is_made_of_yield) {
  SmallWorld world;
  for (Choice choice :
       {Choice{0.0, 0.9, 1, 40}, Choice{1.0, 0.9, 7, 60}, Choice{0.7, 0.0, 3, 60}, Choice{1.5, 0.5, 9, 60}, Choice{3.0, 1.0, 5, 0, 80}}) {
    for (size_t prompt_count : {1, 2, 17, 65}) {
      Rig rig(world, choice, small_tokens(prompt_count));
      Story run = pull(rig.generation);
      EXPECT_EQ(run, by_hand(world, choice, small_tokens(prompt_count)));
      EXPECT_NE(run.reason, PROOFINFER_STOP_NONE);
    }
  }
}

TEST(Generation, nothing_is_evaluated_before_the_first_pull_and_each_token_by_the_pull_after_it) {
  SmallWorld world;
  Rig rig(world, {}, {1, 100, 101});
  EXPECT_EQ(rig.position(), 0u);
  for (size_t i = 0; i < 5; i++) {
    ASSERT_TRUE(step(rig.generation).answer.ok());
    EXPECT_EQ(rig.position(), 3 + i);
  }
}

TEST(Generation, a_stop_token_is_reported_without_text_and_not_appended) {
  SmallWorld world;
  Ids prompt = small_tokens(4);
  Rig free_run(world, {0.0, 0.9, 1, 30, 0, Ids{}}, prompt);
  Story all = pull(free_run.generation);
  ASSERT_EQ(all.reason, PROOFINFER_STOP_LENGTH) << "an empty set stops at no token";
  int32_t stop = all.tokens[9];
  size_t first = size_t(std::find(all.tokens.begin(), all.tokens.end(), stop) - all.tokens.begin());
  Rig rig(world, {0.0, 0.9, 1, 30, 0, Ids{0, stop}}, prompt);
  Story run = pull(rig.generation);
  EXPECT_EQ(run.tokens, Ids(all.tokens.begin(), all.tokens.begin() + std::ptrdiff_t(first) + 1));
  EXPECT_EQ(run.reason, PROOFINFER_STOP_TOKEN);
  EXPECT_EQ(rig.position(), 4 + first);
  EXPECT_EQ(run, by_hand(world, {0.0, 0.9, 1, 30, 0, Ids{0, stop}}, prompt));
}

TEST(Generation, the_default_stop_token_is_bos) {
  SmallWorld world;
  Rig rig(world, {}, {1, 100});
  ASSERT_TRUE(answer_of(proofinfer_generation_force, rig.generation.get(), 2).ok());
  EXPECT_EQ(step(rig.generation).reason, PROOFINFER_STOP_NONE) << "EOS is none";
  ASSERT_TRUE(answer_of(proofinfer_generation_force, rig.generation.get(), 1).ok());
  Step s = step(rig.generation);
  EXPECT_EQ(s.token, 1);
  EXPECT_EQ(s.reason, PROOFINFER_STOP_TOKEN);
  EXPECT_EQ(s.text, "");
}

TEST(Generation, after_the_end_every_call_reports_the_end_again) {
  SmallWorld world;
  for (Choice choice : {Choice{0.0, 0.9, 1, 3}, Choice{0.0, 0.9, 1, 0, 5, Ids{}}}) {
    Rig rig(world, choice, {1, 100});
    Story run = pull(rig.generation);
    size_t position = rig.position();
    proofinfer_session_rewind(rig.session.get(), 0, nullptr);
    for (int i = 0; i < 3; i++) {
      Step s = step(rig.generation, i == 1 ? 0 : 100);
      EXPECT_TRUE(s.answer.ok()) << s.answer;
      EXPECT_EQ(s.token, -1);
      EXPECT_EQ(s.reason, run.reason);
      EXPECT_EQ(s.needed, 0u);
    }
    EXPECT_EQ(answer_of(proofinfer_generation_force, rig.generation.get(), 5).status, PROOFINFER_E_STATE);
    EXPECT_GT(position, 0u);
  }
}

TEST(Generation, the_context_gives_one_token_more_than_it_has_room_to_append) {
  SmallWorld world;
  const int64_t context = 12;
  for (size_t prompt_count : {1, 11, 12}) {
    Choice choice{0.0, 0.9, 1, 0, context, Ids{}};
    Rig rig(world, choice, small_tokens(prompt_count));
    Story run = pull(rig.generation);
    EXPECT_EQ(run.reason, PROOFINFER_STOP_CONTEXT);
    EXPECT_EQ(run.tokens.size(), size_t(context) - prompt_count + 1) << "the last position's logits give the last token";
    EXPECT_EQ(rig.position(), size_t(context));
  }
  Answer answer;
  Rig too_long(world, {0.0, 0.9, 1, 0, context}, small_tokens(13), &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_CONTEXT);
  EXPECT_EQ(answer.message, "a prompt of 13 tokens at position 0 does not fit the context of 12 positions: there is room for 12");
}

TEST(Generation, max_tokens_counts_what_is_yielded_and_comes_before_the_context) {
  SmallWorld world;
  Rig one(world, {0.0, 0.9, 1, 1}, {1});
  Step s = step(one.generation);
  EXPECT_EQ(s.reason, PROOFINFER_STOP_LENGTH);
  EXPECT_GE(s.token, 0);
  Rig both(world, {0.0, 0.9, 1, 1, 4, Ids{}}, small_tokens(4));
  EXPECT_EQ(step(both.generation).reason, PROOFINFER_STOP_LENGTH);
  Rig stop_first(world, {0.0, 0.9, 1, 1}, {1, 100});
  ASSERT_TRUE(answer_of(proofinfer_generation_force, stop_first.generation.get(), 1).ok());
  EXPECT_EQ(step(stop_first.generation).reason, PROOFINFER_STOP_TOKEN);
}

TEST(Generation, a_buffer_too_small_keeps_the_token_pending) {
  SmallWorld world;
  Choice choice{1.0, 0.9, 3, 50};
  Rig whole(world, choice, small_tokens(5)), rig(world, choice, small_tokens(5));
  Story expected = pull(whole.generation), run;
  while (run.reason == PROOFINFER_STOP_NONE) {
    Step s = step(rig.generation, 0);
    if (s.answer.status == PROOFINFER_E_BUFFER) {
      size_t needed = s.needed;
      ASSERT_GT(needed, 0u);
      EXPECT_EQ(answer_of(proofinfer_generation_force, rig.generation.get(), 5).status, PROOFINFER_E_STATE);
      s = step(rig.generation, needed - 1);
      ASSERT_EQ(s.answer.status, PROOFINFER_E_BUFFER) << s.answer;
      ASSERT_EQ(s.needed, needed);
      s = step(rig.generation, needed);
    }
    ASSERT_TRUE(s.answer.ok()) << s.answer;
    run.tokens.push_back(s.token);
    run.text += s.text;
    run.reason = s.reason;
  }
  EXPECT_EQ(run, expected);
}

TEST(Generation, text_comes_in_whole_characters_and_the_end_flushes) {
  SmallWorld world;
  Rig rig(world, {0.0, 0.9, 1, 7}, {1});
  const std::string bytes = "\xF0\x9F\xA6\x99\xC3\xA9\xE2";
  std::string text[7];
  for (size_t i = 0; i < bytes.size(); i++) {
    ASSERT_TRUE(answer_of(proofinfer_generation_force, rig.generation.get(), 3 + uint8_t(bytes[i])).ok());
    Step s = step(rig.generation);
    EXPECT_EQ(s.token, 3 + uint8_t(bytes[i]));
    text[i] = s.text;
  }
  EXPECT_EQ(text[3], "\xF0\x9F\xA6\x99");
  EXPECT_EQ(text[5], "\xC3\xA9");
  EXPECT_EQ(text[6], "\xEF\xBF\xBD") << "max_tokens ends inside a character";
  for (size_t i : {0, 1, 2, 4}) EXPECT_EQ(text[i], "");
}

TEST(Generation, the_first_text_follows_the_last_prompt_token) {
  SmallWorld world;
  int32_t space_a = 259 + 4;  // " a"
  Rig after_bos(world, {}, {1}), after_text(world, {}, {1, 260});
  for (Rig *rig : {&after_bos, &after_text}) ASSERT_TRUE(answer_of(proofinfer_generation_force, rig->generation.get(), space_a).ok());
  EXPECT_EQ(step(after_bos.generation).text, "a");
  EXPECT_EQ(step(after_text.generation).text, " a");
}

TEST(Generation, forced_tokens_draw_no_number_and_are_evaluated_like_any_other) {
  SmallWorld world;
  Choice choice{1.0, 0.9, 3, 30, 0, Ids{}};
  Rig rig(world, choice, {1, 100});
  Ids forced = {101, 102, 103};
  for (int32_t token : forced) {
    ASSERT_TRUE(answer_of(proofinfer_generation_force, rig.generation.get(), 50).ok());
    ASSERT_TRUE(answer_of(proofinfer_generation_force, rig.generation.get(), token).ok()) << "the last force counts";
    EXPECT_EQ(step(rig.generation).token, token);
  }
  Choice fewer = choice;
  fewer.max_tokens = 27;
  Rig prompted(world, fewer, {1, 100, 101, 102, 103});
  EXPECT_EQ(pull(rig.generation).tokens, pull(prompted.generation).tokens);
}

TEST(Generation, a_session_with_logits_is_continued_without_a_prompt) {
  SmallWorld world;
  Choice choice{1.0, 0.9, 3, 20, 0, Ids{}};
  Options options = choice.options();
  Session session = make_session(world.model, options.get());
  ASSERT_TRUE(append(session, small_tokens(9), PROOFINFER_LOGITS_LAST).ok());
  Sampler sampler = make_sampler(small_shape().vocab(), options.get());
  Generation generation = make_generation(session, world.tokenizer, sampler, {}, options.get());
  Rig prompted(world, choice, small_tokens(9));
  EXPECT_EQ(pull(generation), pull(prompted.generation));
}

TEST(Generation, without_prompt_and_without_logits_there_is_nothing_to_continue) {
  SmallWorld world;
  Session session = make_session(world.model);
  Sampler sampler = make_sampler(small_shape().vocab());
  Answer answer;
  make_generation(session, world.tokenizer, sampler, {}, nullptr, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_STATE);
  EXPECT_EQ(answer.message, "the prompt has 0 tokens and so has the session; expected at least 1");
  ASSERT_TRUE(append(session, small_tokens(3), PROOFINFER_LOGITS_NONE).ok());
  make_generation(session, world.tokenizer, sampler, {}, nullptr, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_STATE);
  EXPECT_EQ(answer.message, "the prompt has 0 tokens and the session keeps no logits of its last position, 2");
}

TEST(Generation, a_session_moved_by_someone_else_is_noticed) {
  SmallWorld world;
  Rig rig(world, {0.0, 0.9, 1, 0, 0, Ids{}}, {1, 100});
  step(rig.generation);
  step(rig.generation);
  ASSERT_EQ(rig.position(), 3u);
  ASSERT_TRUE(append(rig.session, {5}, PROOFINFER_LOGITS_LAST).ok());
  Step s = step(rig.generation);
  EXPECT_EQ(s.answer.status, PROOFINFER_E_STATE);
  EXPECT_EQ(s.answer.message, "the session stands at position 4; the generation left it at 3");
  ASSERT_TRUE(answer_of(proofinfer_session_rewind, rig.session.get(), size_t(3)).ok());
  EXPECT_TRUE(step(rig.generation).answer.ok()) << "moved back, it goes on";
}

TEST(Generation, a_cancelled_prompt_is_evaluated_again_by_the_next_call) {
  SmallWorld world;
  Choice choice{1.0, 0.9, 3, 20};
  Rig rig(world, choice, small_tokens(40)), other(world, choice, small_tokens(40));
  proofinfer_cancel *raw = nullptr;
  ASSERT_TRUE(answer_of(proofinfer_cancel_create, &raw).ok());
  Cancel cancel(raw);
  Story run;
  for (int i = 0; i < 5; i++) {
    proofinfer_cancel_request(cancel.get());
    EXPECT_EQ(step(rig.generation, 100, cancel.get()).answer.status, PROOFINFER_E_CANCELLED);
    EXPECT_EQ(rig.position(), i == 0 ? 0 : 39u + size_t(i));
    proofinfer_cancel_reset(cancel.get());
    Step s = step(rig.generation, 100, cancel.get());
    ASSERT_TRUE(s.answer.ok()) << s.answer;
    run.tokens.push_back(s.token);
    run.text += s.text;
  }
  Story expected = pull(other.generation, 5);
  EXPECT_EQ(run.tokens, expected.tokens);
  EXPECT_EQ(run.text, expected.text);
}

TEST(Generation, logits_that_are_not_finite_stop_the_call_and_a_forced_token_goes_on) {
  Model model = open_model(checkpoint_with_nan());
  Tokenizer tokenizer = open_tokenizer(tokenizer_file(small_pieces()), small_shape().vocab());
  Session session = make_session(model);
  Sampler sampler = make_sampler(small_shape().vocab());
  Generation generation = make_generation(session, tokenizer, sampler, {1, 100});
  for (int i = 0; i < 2; i++) {
    Step s = step(generation);
    EXPECT_EQ(s.answer.status, PROOFINFER_E_NOT_FINITE);
    EXPECT_EQ(s.answer.message, "the logit of id 0 is NaN; expected finite values");
    EXPECT_EQ(proofinfer_session_position(session.get()), 2u) << "the prompt is not appended twice";
  }
  ASSERT_TRUE(answer_of(proofinfer_generation_force, generation.get(), 3 + 'x').ok());
  EXPECT_EQ(step(generation).text, "x");
}

TEST(Generation, wrong_vocabularies_and_ids_are_refused_with_both_numbers) {
  SmallWorld world;
  int32_t vocab = small_shape().vocab();
  std::string size = std::to_string(vocab), last = std::to_string(vocab - 1);
  Session session = make_session(world.model);
  Sampler sampler = make_sampler(vocab), small_sampler = make_sampler(vocab - 1);
  Tokenizer small_tokenizer = open_tokenizer(tokenizer_file(small_pieces()), vocab - 1);
  auto refused = [&](const Tokenizer &t, const Sampler &p, const Ids &prompt, const proofinfer_options *options = nullptr) {
    Answer answer;
    make_generation(session, t, p, prompt, options, &answer);
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
    return answer.message;
  };
  EXPECT_EQ(refused(world.tokenizer, small_sampler, {1}),
            "the sampler's vocab_size is " + std::to_string(vocab - 1) + "; expected the model's " + size);
  EXPECT_EQ(refused(small_tokenizer, sampler, {1}),
            "the tokenizer has " + std::to_string(vocab - 1) + " pieces; expected at least the model's vocab_size " + size);
  EXPECT_EQ(refused(world.tokenizer, sampler, {1, -1}), "prompt token 1 is -1; expected 0 to " + last);
  EXPECT_EQ(refused(world.tokenizer, sampler, {1, 2, vocab}), "prompt token 2 is " + size + "; expected 0 to " + last);
  Options options = make_options();
  set_tokens(options, "stop_tokens", {1, vocab});
  EXPECT_EQ(refused(world.tokenizer, sampler, {1}, options.get()), "stop token 1 is " + size + "; expected 0 to " + last);
  Generation generation = make_generation(session, world.tokenizer, sampler, {1});
  for (int32_t id : {-1, vocab}) {
    Answer answer = answer_of(proofinfer_generation_force, generation.get(), id);
    EXPECT_EQ(answer.status, PROOFINFER_E_ARGUMENT);
    EXPECT_EQ(answer.message, "forced token 0 is " + std::to_string(id) + "; expected 0 to " + last);
  }
}

TEST(Generation, each_of_its_three_parts_can_be_busy_and_nothing_is_lost) {
  SmallWorld world;
  Choice choice{1.0, 0.9, 3, 6};
  Rig rig(world, choice, {1, 100}), other(world, choice, {1, 100});
  proofinfer::BusyFlag *session = reinterpret_cast<proofinfer::Session *>(rig.session.get())->busy();
  proofinfer::BusyFlag *sampler = reinterpret_cast<proofinfer::Sampler *>(rig.sampler.get())->busy();
  Story run;
  while (run.reason == PROOFINFER_STOP_NONE) {
    for (proofinfer::BusyFlag *flag : {session, sampler}) {
      ASSERT_TRUE(flag->try_enter());
      EXPECT_EQ(step(rig.generation).answer.status, PROOFINFER_E_BUSY);
      flag->leave();
    }
    Step s = step(rig.generation);
    ASSERT_TRUE(s.answer.ok()) << s.answer;
    run.tokens.push_back(s.token);
    run.text += s.text;
    run.reason = s.reason;
  }
  EXPECT_EQ(run, pull(other.generation));
  ASSERT_TRUE(session->try_enter());
  Answer answer;
  make_generation(rig.session, world.tokenizer, rig.sampler, {1}, nullptr, &answer);
  EXPECT_EQ(answer.status, PROOFINFER_E_BUSY);
  session->leave();
}

// A driver's work, the tokens evaluated `part` at a time.
Story drive(proofinfer::Generation *generation, size_t part) {
  proofinfer::Failure failure;
  Story run;
  while (run.reason == PROOFINFER_STOP_NONE) {
    EXPECT_EQ(generation->claim(&failure), proofinfer::kOk) << failure.message;
    while (generation->wanted().count > 0) {
      proofinfer::Generation::Wanted wanted = generation->wanted();
      size_t count = std::min(part, wanted.count);
      EXPECT_EQ(generation->session()->append(wanted.tokens, count, proofinfer::LogitsMode::kLast, nullptr, &failure), proofinfer::kOk);
      generation->appended(count);
    }
    EXPECT_FALSE(generation->has_piece());
    EXPECT_EQ(generation->choose(&failure), proofinfer::kOk) << failure.message;
    EXPECT_TRUE(generation->has_piece());
    char text[64];
    proofinfer::Generation::Step s;
    EXPECT_EQ(generation->take(text, sizeof(text), &s, &failure), proofinfer::kBusy) << "claimed";
    generation->unclaim();
    EXPECT_EQ(generation->take(text, sizeof(text), &s, &failure), proofinfer::kOk) << failure.message;
    run.tokens.push_back(s.token);
    run.text += std::string(text, s.needed);
    run.reason = int32_t(s.reason);
  }
  return run;
}

TEST(Generation, driven_from_outside_it_gives_the_same_in_any_parts) {
  SmallWorld world;
  for (size_t part : {1, 7, 100}) {
    Choice choice{1.0, 0.9, 3, 40};
    Rig rig(world, choice, small_tokens(30)), alone(world, choice, small_tokens(30));
    proofinfer::Generation *driven = reinterpret_cast<proofinfer::Generation *>(rig.generation.get());
    proofinfer::Failure failure;
    ASSERT_EQ(driven->claim(&failure), proofinfer::kOk) << failure.message;
    EXPECT_EQ(step(rig.generation).answer.status, PROOFINFER_E_BUSY);
    EXPECT_EQ(append(rig.session, {5}).status, PROOFINFER_E_BUSY);
    EXPECT_EQ(driven->claim(&failure), proofinfer::kBusy);
    driven->unclaim();
    EXPECT_EQ(drive(driven, part), pull(alone.generation));
    EXPECT_EQ(step(rig.generation).token, -1) << "the end again";
  }
}

TEST(Generation, a_driver_may_begin_and_stop_anywhere) {
  SmallWorld world;
  Choice choice{1.0, 0.9, 3, 10};
  Rig rig(world, choice, small_tokens(5)), alone(world, choice, small_tokens(5));
  proofinfer::Generation *driven = reinterpret_cast<proofinfer::Generation *>(rig.generation.get());
  proofinfer::Failure failure;
  Story run = pull(rig.generation, 3);
  ASSERT_EQ(driven->claim(&failure), proofinfer::kOk);
  EXPECT_FALSE(driven->has_piece() || driven->ended());
  ASSERT_EQ(driven->session()->append(driven->wanted().tokens, 1, proofinfer::LogitsMode::kLast, nullptr, &failure), proofinfer::kOk);
  driven->appended(1);
  driven->unclaim();
  char text[64];
  proofinfer::Generation::Step nothing;
  ASSERT_EQ(driven->take(text, sizeof(text), &nothing, &failure), proofinfer::kOk);
  EXPECT_TRUE(nothing.token == -1 && nothing.reason == proofinfer::StopReason::kNone);
  Story rest = pull(rig.generation);
  run.tokens.insert(run.tokens.end(), rest.tokens.begin(), rest.tokens.end());
  EXPECT_EQ(run.tokens, pull(alone.generation).tokens);

  Rig moved(world, choice, small_tokens(5));
  ASSERT_TRUE(append(moved.session, {5}).ok());
  EXPECT_EQ(reinterpret_cast<proofinfer::Generation *>(moved.generation.get())->claim(&failure), proofinfer::kState);
  ASSERT_TRUE(answer_of(proofinfer_session_rewind, moved.session.get(), size_t(0)).ok()) << "it was not kept busy";
}

TEST(Generation, everything_it_needs_lives_as_long_as_it_and_pulling_allocates_nothing) {
  CountingAllocator allocator;
  Options options = make_options();
  allocator.install(options);
  set_f64(options, "temperature", 1.0);
  {
    SmallWorld world(options.get());
    Session session = make_session(world.model, options.get());
    Sampler sampler = make_sampler(small_shape().vocab(), options.get());
    Generation generation = make_generation(session, world.tokenizer, sampler, small_tokens(50), options.get());
    session.reset();
    sampler.reset();
    world.tokenizer.reset();
    world.model.reset();
    uint64_t calls = allocator.calls();
    pull(generation, 200);
    EXPECT_EQ(allocator.calls(), calls);
  }
  EXPECT_EQ(allocator.held_blocks(), 0u);
}

TEST(Generation, memory_may_run_out_while_it_is_made) {
  SmallWorld world;
  Session session = make_session(world.model);
  Sampler sampler = make_sampler(small_shape().vocab());
  CountingAllocator allocator;
  Options options = make_options();
  allocator.install(options);
  ASSERT_TRUE(make_generation(session, world.tokenizer, sampler, {1, 2}, options.get()));
  uint64_t calls = allocator.calls();
  for (uint64_t i = 0; i < calls; i++) {
    allocator.fail_call(i);
    Answer answer;
    make_generation(session, world.tokenizer, sampler, {1, 2}, options.get(), &answer);
    EXPECT_EQ(answer.status, PROOFINFER_E_MEMORY) << answer;
    EXPECT_EQ(allocator.held_blocks(), 0u);
  }
}

TEST(Generation, a_tokenizer_may_have_more_pieces_than_the_model) {
  SmallWorld world;
  std::vector<Piece> pieces = small_pieces();
  pieces.push_back({"more", -99.0f});
  Tokenizer larger = open_tokenizer(tokenizer_file(pieces), int32_t(pieces.size()));
  Session session = make_session(world.model);
  Sampler sampler = make_sampler(small_shape().vocab());
  EXPECT_TRUE(step(make_generation(session, larger, sampler, {1})).answer.ok());
}

}  // namespace proofinfer_test
