// 16-bit floating-point numbers as float32, exactly. Any thread.
#ifndef PROOFINFER_BASE_HALF_H
#define PROOFINFER_BASE_HALF_H

#include <stdint.h>
#include <string.h>

namespace proofinfer {

inline float widen_bf16(uint16_t half) {
  uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// A NaN keeps its payload and becomes quiet, as processors do it.
inline float widen_f16(uint16_t half) {
  uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31u, fraction = half & 0x3ffu;
  if (exponent == 0) {
    float magnitude = static_cast<float>(fraction) * (1.0f / 16777216.0f);  // 2^-24, exact
    return sign ? -magnitude : magnitude;
  }
  uint32_t bits = sign | fraction << 13 | (exponent == 31 ? 0x7f800000u | (fraction ? 0x400000u : 0u) : (exponent + 112) << 23);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace proofinfer

#endif
