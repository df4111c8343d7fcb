/* The scalar elementary functions: the definition that every vector form must equal. fma() is one rounding on every machine; all other
 * products and sums are rounded one by one (-ffp-contract=off). */
#include "proved/elementary.h"
#include "proved/float_contract.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/elementary_tables.h"
#include "kernels/logarithm.h"

static uint32_t float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float bits_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static uint64_t double_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static double bits_double(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* 2^(k/32), k an integer in two's complement of which only the low 17 bits count; the result must be a normal double. */
static double exp2_scale(uint64_t k) { return bits_double(pi_exp2_table[k % 32] + (k << 47)); }

float pi_expf(float x) {
  if (!(x <= PI_EXP_MAX)) return x > PI_EXP_MAX ? HUGE_VALF : x + x;
  if (x < PI_EXP_MIN) return 0.0f;
  double z = PI_EXP_SCALE * (double)x;
  double shifted = z + PI_ROUND_SHIFT;
  double k = shifted - PI_ROUND_SHIFT;
  double r = fma(PI_EXP_SCALE, (double)x, -k);
  double high = fma(PI_EXP_C0, r, PI_EXP_C1);
  double low = fma(PI_EXP_C2, r, 1.0);
  double y = fma(high, r * r, low);
  return (float)(y * exp2_scale(double_bits(shifted)));
}

/* log2 of a normal x > 0. */
static double log2_of(float x) {
  uint32_t bits = float_bits(x);
  uint32_t from_start = bits - 0x3f330000u; /* c of the table's first entry is a little above this float */
  uint32_t exponent = from_start & 0xff800000u;
  const pi_log2_entry *entry = &pi_log2_table[(from_start >> 19) % 16];
  double z = (double)bits_float(bits - exponent);
  /* the exponent is a multiple of 2^23 between -126 * 2^23 and 128 * 2^23: converting and dividing is exact */
  double k = (exponent & 0x80000000u) ? -(double)(0u - exponent) / 8388608.0 : (double)exponent / 8388608.0;
  double r = fma(z, entry->inverse, -1.0);
  double y0 = entry->log2 + k;
  double r2 = r * r;
  double y1 = fma(PI_POW_A0, r, PI_POW_A1);
  double p = fma(PI_POW_A2, r, PI_POW_A3);
  double q = fma(PI_POW_A4, r, y0);
  q = fma(p, r2, q);
  return fma(y1, r2 * r2, q);
}

float pi_powf(float x, float y) {
  if (!(x >= FLT_MIN && x <= FLT_MAX)) return NAN; /* outside of the stated domain */
  double e = (double)y * log2_of(x);
  if (e != e) return NAN;
  if (e >= 128.0) return HUGE_VALF;
  if (e <= -150.0) return 0.0f;
  double shifted = e + PI_ROUND_SHIFT / 32;
  double r = e - (shifted - PI_ROUND_SHIFT / 32);
  double high = fma(PI_POW_E0, r, PI_POW_E1);
  double low = fma(PI_POW_E2, r, 1.0);
  double w = fma(high, r * r, low);
  return (float)(w * exp2_scale(double_bits(shifted)));
}

float pi_logf(float x) {
  if (!(x >= FLT_MIN && x <= FLT_MAX)) return NAN; /* outside of the stated domain */
  return (float)(log2_of(x) * 0x1.62e42fefa39efp-1);
}

static double sine_polynomial(double x, double x2) {
  double x3 = x * x2;
  double s1 = fma(x2, PI_SIN_S3, PI_SIN_S2);
  double x7 = x3 * x2;
  double s = fma(x3, PI_SIN_S1, x);
  return fma(x7, s1, s);
}

static double cosine_polynomial(double x2) {
  double x4 = x2 * x2;
  double c2 = fma(x2, PI_COS_C4, PI_COS_C3);
  double c1 = fma(x2, PI_COS_C1, PI_COS_C0);
  double x6 = x4 * x2;
  double c = fma(x4, PI_COS_C2, c1);
  return fma(x6, c2, c);
}

/* x = remainder + n * pi/2 for a magnitude below 120; n by its two's complement. */
static double reduce_small(double x, uint32_t *n) {
  double turns = x * PI_QUARTER_TURNS; /* below 120 * 2/pi * 2^24 < 2^31 in magnitude */
  uint32_t rounded = (uint32_t)(int32_t)turns + 0x800000u;
  int32_t quotient = (int32_t)((rounded >> 24) ^ 0x80u) - 0x80; /* rounded / 2^24 towards minus infinity */
  *n = (uint32_t)quotient;
  return fma(-(double)quotient, PI_HALF_PI, x);
}

/* The same for a finite magnitude of 120 or more, of which only the magnitude is read: Payne and Hanek, on 96 bits of 4/pi. */
static double reduce_large(uint32_t bits, uint32_t *n) {
  const uint32_t *digits = &pi_four_over_pi_table[(bits >> 26) & 15];
  uint32_t mantissa = ((bits & 0x7fffffu) | 0x800000u) << ((bits >> 23) & 7);
  uint32_t r0 = mantissa * digits[0]; /* what is above 2^32 are whole turns */
  uint64_t r1 = (uint64_t)mantissa * digits[4];
  uint64_t r2 = (uint64_t)mantissa * digits[8];
  uint64_t v = ((r2 >> 32) | ((uint64_t)r0 << 32)) + r1;
  uint64_t quotient = (v + ((uint64_t)1 << 61)) >> 62;
  v -= quotient << 62;
  *n = (uint32_t)quotient;
  double magnitude = (v >> 63) ? -(double)(0u - v) : (double)v;
  return magnitude * PI_HALF_PI_FIXED;
}

/* The sine (cosine 0) or cosine (cosine 1) of the remainder x and n quarter turns; `turns` adds those of the input's sign. */
static float circular(double x, uint32_t n, uint32_t turns, uint32_t cosine) {
  uint32_t quarter = (n + turns) & 3;
  double x2 = x * x;
  /* a factor of 1 or -1 is exact and the cosine is never 0 here, so this negates every coefficient of the polynomial */
  if ((n & 1) != cosine) return (float)(quarter >= 2 ? -cosine_polynomial(x2) : cosine_polynomial(x2));
  return (float)sine_polynomial(quarter == 1 || quarter == 2 ? -x : x, x2);
}

float pi_sinf(float x) {
  uint32_t bits = float_bits(x);
  uint32_t top = (bits >> 20) & 0x7ff;
  uint32_t n;
  if (top < PI_TOP_TINY) return x;
  if (top < PI_TOP_PI_4) return (float)sine_polynomial((double)x, (double)x * (double)x);
  if (top < PI_TOP_120) {
    double r = reduce_small((double)x, &n);
    return circular(r, n, 0, 0);
  }
  if (top >= PI_TOP_INFINITY) return x - x; /* NaN of both */
  double r = reduce_large(bits, &n);
  return circular(r, n, bits >> 31, 0);
}

float pi_cosf(float x) {
  uint32_t bits = float_bits(x);
  uint32_t top = (bits >> 20) & 0x7ff;
  uint32_t n;
  if (top < PI_TOP_TINY) return 1.0f;
  if (top < PI_TOP_PI_4) return (float)cosine_polynomial((double)x * (double)x);
  if (top < PI_TOP_120) {
    double r = reduce_small((double)x, &n);
    return circular(r, n, 0, 1);
  }
  if (top >= PI_TOP_INFINITY) return x - x;
  double r = reduce_large(bits, &n);
  return circular(r, n, bits >> 31, 1);
}

float pi_sqrtf(float x) { return sqrtf(x); }
