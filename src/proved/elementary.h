/* The library's own elementary functions, equal to glibc's on every input they are used on (docs/arithmetic.md). The proof tool sees
 * these declarations only: functions of their argument that touch nothing else. */
#ifndef PROOFINFER_PROVED_ELEMENTARY_H
#define PROOFINFER_PROVED_ELEMENTARY_H

#include <stdint.h>
#include <string.h>

#include "proved/lemmas.h"

#ifdef __cplusplus
extern "C" {
#endif

/*@ axiomatic Elementary { // names only: nothing is said about their values
      logic float Exp(float x);
      logic float Sin(float x);
      logic float Cos(float x);
      logic float Pow(float x, float y);
      logic float Sqrt(float x);
      logic float FloatOfBits(integer bits);
      logic float FloatAt{L}(int8_t *p) reads p[0 .. 3];
    } */

/*@ terminates \true;
    assigns \nothing;
    ensures Same(\result, Exp(x)); */
float pi_expf(float x);
/*@ terminates \true;
    assigns \nothing;
    ensures Same(\result, Sin(x)); */
float pi_sinf(float x);
/*@ terminates \true;
    assigns \nothing;
    ensures Same(\result, Cos(x)); */
float pi_cosf(float x);
/*@ terminates \true;
    assigns \nothing;
    ensures Same(\result, Pow(x, y)); */
float pi_powf(float x, float y); /* x normal and > 0, -150 < y * log2(x) < 128 */
/*@ terminates \true;
    assigns \nothing;
    ensures Same(\result, Sqrt(x)); */
float pi_sqrtf(float x);

/* The float with these bits, and floats at any address: the tool sees contracts only, the compiler the bodies. */
#ifdef __FRAMAC__
/*@ terminates \true;
    assigns \nothing;
    ensures Same(\result, FloatOfBits(bits)); */
float pi_float_of_bits(uint32_t bits);
/*@ requires \valid_read(from + (0 .. 3));
    terminates \true;
    assigns \nothing;
    ensures Same(\result, FloatAt(from)); */
float pi_load_float(const int8_t *from);
/*@ requires \valid(to + (0 .. 3));
    terminates \true;
    assigns to[0 .. 3];
    ensures Same(FloatAt(to), value); */
void pi_store_float(int8_t *to, float value);
#else
static inline float pi_float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
static inline float pi_load_float(const int8_t *from) {
  float value;
  memcpy(&value, from, sizeof(value));
  return value;
}
static inline void pi_store_float(int8_t *to, float value) { memcpy(to, &value, sizeof(value)); }
#endif

#ifdef __cplusplus
}
#endif

#endif
