// The floating-point environment of the arithmetic contract: round to nearest, subnormals kept, exceptions masked. Per thread.
#ifndef PROOFINFER_BASE_FP_ENVIRONMENT_H
#define PROOFINFER_BASE_FP_ENVIRONMENT_H

#include <stdint.h>

#if defined(__FAST_MATH__)
#error "the arithmetic contract cannot be kept under -ffast-math or -Ofast"
#endif
#if !defined(__FLT_EVAL_METHOD__) || __FLT_EVAL_METHOD__ != 0
#error "float expressions must be evaluated in float (FLT_EVAL_METHOD 0)"
#endif

namespace proofinfer {

// Sets the contract's environment for its own lifetime and puts the caller's back, sticky flags included.
class FpScope {
 public:
  FpScope();
  ~FpScope();
  FpScope(const FpScope &) = delete;
  FpScope &operator=(const FpScope &) = delete;

 private:
  alignas(16) unsigned char saved_[64];  // the caller's environment, in the form that fp_environment.cpp knows
};

}  // namespace proofinfer

#endif
