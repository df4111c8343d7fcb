// The floating-point environment of the arithmetic contract: round to nearest, subnormals kept, exceptions masked. Per thread.
#ifndef PROOFINFER_BASE_FP_ENVIRONMENT_H
#define PROOFINFER_BASE_FP_ENVIRONMENT_H

#include <stdint.h>

#include "proved/float_contract.h"

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
