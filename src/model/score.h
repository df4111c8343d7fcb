// Log-probabilities of given tokens of many texts, evaluated together. Any thread.
#ifndef PROOFINFER_MODEL_SCORE_H
#define PROOFINFER_MODEL_SCORE_H

#include "base/cancel.h"
#include "model/model.h"
#include "model/settings.h"

namespace proofinfer {

// Texts one after another, each from the beginning of a sequence.
struct TokenTexts {
  const int32_t *tokens;
  const size_t *counts;  // [text_count] tokens of each
  size_t text_count;
};

// logprobs: one float a token, NaN for the first of each text. Errors: kArgument, kContext (a text longer than the model's seq_len), kNotFinite,
// kCancelled, kMemory, kLimit.
Status score_texts(const Model *model, const TokenTexts &texts, const Settings &settings, float *logprobs, Cancel *cancel,
                   Failure *failure);

}  // namespace proofinfer

#endif
