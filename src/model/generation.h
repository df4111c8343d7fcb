// Session, tokenizer and sampler pulled together: one token and its text at a time. One thread at a time; a second one gets kBusy.
//
// next() does all of it. A driver that evaluates the tokens of many generations in one pass goes through the same states itself:
//
//   claim                                  nobody else gets in, nor into the session
//   wanted() -> evaluate -> appended()     in any parts, the last token with its logits, until nothing is wanted
//   choose()                               a piece: the next token
//   unclaim                                between any two of these
//   take()                                 hands the piece over; its token is what is wanted next, unless the generation has ended
#ifndef PROOFINFER_MODEL_GENERATION_H
#define PROOFINFER_MODEL_GENERATION_H

#include "base/cancel.h"
#include "base/object.h"
#include "model/sampler.h"
#include "model/session.h"
#include "model/stop_strings.h"
#include "model/stream.h"
#include "model/tokenizer.h"

namespace proofinfer {

// The values of the public PROOFINFER_STOP_ constants; src/api asserts that they agree.
enum class StopReason : int32_t { kNone = 0, kToken = 1, kLength = 2, kContext = 3, kString = 4, kCancelled = 5 };

class Generation : public Object {
 public:
  static constexpr Kind kKind = Kind::kGeneration;
  // prompt: [prompt_count], copied. Errors: kArgument, kState, kContext, kMemory, kBusy.
  static Status create(Session *session, const Tokenizer *tokenizer, Sampler *sampler, const int32_t *prompt, size_t prompt_count,
                       const Settings &settings, Generation **generation, Failure *failure);
  Generation(const MemoryHooks &hooks, uint64_t limit_bytes) : Object(kKind, hooks, limit_bytes) {}

  // What one call yields. All zero, token -1, on failure, except `needed` with kBufferTooSmall.
  struct Step {
    int32_t token;  // -1: the generation had ended before
    size_t needed;  // bytes of text
    StopReason reason;
  };
  // The text to buffer: [capacity]. On failure nothing is lost: a token that was chosen stays pending, tokens that were not appended stay so.
  Status next(Cancel *cancel, char *buffer, size_t capacity, Step *step, Failure *failure);
  // Of the token that was handed over last, by the model's own distribution.
  struct Logprobs {
    float chosen;           // NaN where the logits are not finite and the token was forced
    const int32_t *tokens;  // [count] the most probable ones
    const float *logprobs;  // [count] theirs
    size_t count;
  };
  // kState: none was handed over, another one is pending, or none are kept.
  Status logprobs(Logprobs *found, Failure *failure);
  // Which stop string ended it. kState: none did.
  Status stop_string(size_t *index, Failure *failure);
  // The next token that next() yields. kState: one is pending, or the generation has ended.
  Status force(int32_t token, Failure *failure);

  // A piece's token and text, if there is one, or the end; token -1 and kNone where a piece is still to be made. kBufferTooSmall, kBusy.
  Status take(char *buffer, size_t capacity, Step *step, Failure *failure);

  // Until unclaim() every other call here and on the session gives kBusy. kBusy: another thread is in one. kState: the session was moved.
  Status claim(Failure *failure);
  void unclaim();
  Session *session() const { return session_.get(); }
  // The rest is for who claimed it. Tokens to append to the session before choose(): [count], from its position on.
  struct Wanted {
    const int32_t *tokens;
    size_t count;
  };
  Wanted wanted() const { return Wanted{unappended_.data() + appended_count_, unappended_count_ - appended_count_}; }
  // The session has the first `count` of them.
  void appended(size_t count);
  bool has_piece() const { return pending_ >= 0; }
  // The last piece has been handed over.
  bool ended() const { return pending_ < 0 && reason_ != StopReason::kNone; }
  // Chooses the next token by the logits of the session's last position. Errors: those of the sampler; nothing has changed then.
  Status choose(Failure *failure);

 private:
  static Status check(const Session &session, const Tokenizer &tokenizer, const Sampler &sampler, const int32_t *prompt,
                      size_t prompt_count, const Settings &settings, Failure *failure);
  Status copy_settings(const int32_t *prompt, size_t prompt_count, const Settings &settings, Failure *failure);
  // Enters the session and sees that it stands where the generation left it.
  Status enter_session(Failure *failure);
  // Appends what is wanted and chooses.
  Status advance(Cancel *cancel, Failure *failure);
  // The forced token or a sampled one.
  Status pick(int32_t *token, Failure *failure);
  void keep_logprobs();
  // Why the pending token ends the generation, and what it shows.
  void judge();
  StopReason reason_after(int32_t token) const;
  // What the pending token shows, through the filter to `out`, which may be nullptr to count only.
  size_t put_text(Utf8Filter *filter, char *out) const;
  // take(), entered.
  Status deliver(char *buffer, size_t capacity, Step *step, Failure *failure);

  Ref<Session> session_;
  Ref<const Tokenizer> tokenizer_;
  Ref<Sampler> sampler_;
  BusyFlag busy_;
  Utf8Filter filter_;
  size_t position_ = 0;                    // where the session stands unless someone else moved it
  int64_t max_tokens_ = 0;                 // 0: no limit
  int64_t chosen_count_ = 0;               // the pending token included
  int32_t previous_ = -1;                  // the id before the next one
  int32_t forced_ = -1;                    // -1: none
  int32_t pending_ = -1;                   // chosen and not yet handed over; -1: none
  StopReason reason_ = StopReason::kNone;  // after the pending token; without one: why the generation has ended
  Buffer<int32_t> unappended_;             // [unappended_count_] the prompt, later the last token; room for 1 at least
  size_t unappended_count_ = 0;
  size_t appended_count_ = 0;  // of them
  Buffer<int32_t> stop_tokens_;
  StopStrings stop_strings_;
  size_t stop_string_ = 0;                            // with kString: which
  Bytes held_ = {nullptr, 0}, fresh_ = {nullptr, 0};  // what the pending token shows: of what was held back, and of its own bytes
  // With "logprobs", of the pending token, or else of the last one:
  Buffer<int32_t> top_tokens_;  // [logprobs, at most vocab_size]
  Buffer<float> top_logprobs_;  // the same
  size_t top_count_ = 0;        // 0: the logits are not finite
  float logprob_ = 0.0f;
};

}  // namespace proofinfer

#endif
