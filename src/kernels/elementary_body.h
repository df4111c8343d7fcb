// The elementary functions of a vector register, by the operations of elementary.c in its order. Each kernels_<isa>.cpp whose ISA has a
// fused multiply-add includes this once, inside its anonymous namespace, before kernels_body.h.
//
// What the file must have defined before (Reg: kLanes floats; Wide: half as many doubles; Count: as many 64-bit integers):
//   the operations that kernels_body.h asks for, and sub, absolute, select_less(a, b, x, y): a < b ? x : y
//   widen_low, widen_high, narrow(low, high); wide_set1, wide_add, wide_sub, wide_mul
//   wide_fma(a, b, c) = a * b + c, wide_fms = a * b - c and wide_fnma = c - a * b, rounded once
//   exp2_scale(shifted): the double of bits T[k mod 32] + (k << 47), k the low bits of shifted
//   quarter_turns(turns, &count): floor((trunc(turns) + 2^23) / 2^24) as integers and as doubles
//   next(count) = count + 1, negate_bit1(x, count): -x where count & 2; select_odd(count, x, y): count & 1 ? x : y
//   all_less(a, b)

PI_INLINE Wide exp_wide(Wide x) {
  Wide shift = wide_set1(PI_ROUND_SHIFT);
  Wide scale = wide_set1(PI_EXP_SCALE);
  Wide shifted = wide_add(wide_mul(scale, x), shift);
  Wide k = wide_sub(shifted, shift);
  Wide r = wide_fms(scale, x, k);
  Wide high = wide_fma(wide_set1(PI_EXP_C0), r, wide_set1(PI_EXP_C1));
  Wide low = wide_fma(wide_set1(PI_EXP_C2), r, wide_set1(1.0));
  Wide y = wide_fma(high, wide_mul(r, r), low);
  return wide_mul(y, exp2_scale(shifted));
}

// Lanes outside of the domain compute some number and are replaced; a NaN stays one on its way.
PI_INLINE Reg exp_reg(Reg x) {
  Reg y = narrow(exp_wide(widen_low(x)), exp_wide(widen_high(x)));
  y = select_less(set1(PI_EXP_MAX), x, set1(__builtin_inff()), y);
  return select_less(x, set1(PI_EXP_MIN), zero(), y);
}

PI_INLINE Wide sine_polynomial(Wide x, Wide x2) {
  Wide x3 = wide_mul(x, x2);
  Wide s1 = wide_fma(x2, wide_set1(PI_SIN_S3), wide_set1(PI_SIN_S2));
  Wide x7 = wide_mul(x3, x2);
  Wide s = wide_fma(x3, wide_set1(PI_SIN_S1), x);
  return wide_fma(x7, s1, s);
}

PI_INLINE Wide cosine_polynomial(Wide x2) {
  Wide x4 = wide_mul(x2, x2);
  Wide c2 = wide_fma(x2, wide_set1(PI_COS_C4), wide_set1(PI_COS_C3));
  Wide c1 = wide_fma(x2, wide_set1(PI_COS_C1), wide_set1(PI_COS_C0));
  Wide x6 = wide_mul(x4, x2);
  Wide c = wide_fma(x4, wide_set1(PI_COS_C2), c1);
  return wide_fma(x6, c2, c);
}

// For magnitudes below 120. Below pi/4 the count is 0 and the remainder x itself, so they need no path of their own.
template <bool kCosine>
PI_INLINE Wide circular_wide(Wide x) {
  Count n;
  Wide quarters = quarter_turns(wide_mul(x, wide_set1(PI_QUARTER_TURNS)), &n);
  Wide r = wide_fnma(quarters, wide_set1(PI_HALF_PI), x);
  Wide r2 = wide_mul(r, r);
  Wide sine = sine_polynomial(negate_bit1(r, next(n)), r2);
  Wide cosine = negate_bit1(cosine_polynomial(r2), n);
  return kCosine ? select_odd(n, sine, cosine) : select_odd(n, cosine, sine);
}

// The lanes of 120 or more and those that are not finite, one by one: few angles are that large.
template <bool kCosine>
Reg circular_large(Reg x, Reg y) {
  float from[kLanes];
  float to[kLanes];
  store(from, x);
  store(to, y);
  for (size_t i = 0; i < kLanes; i++) {
    if (from[i] > -120.0f && from[i] < 120.0f) continue;
    to[i] = kCosine ? pi_cosf(from[i]) : pi_sinf(from[i]);
  }
  return load(to);
}

template <bool kCosine>
PI_INLINE Reg circular_reg(Reg x) {
  Reg size = absolute(x);
  Reg y = narrow(circular_wide<kCosine>(widen_low(x)), circular_wide<kCosine>(widen_high(x)));
  y = select_less(size, set1(0x1p-12f), kCosine ? set1(1.0f) : x, y);
  if (!all_less(size, set1(120.0f))) return circular_large<kCosine>(x, y);
  return y;
}

PI_INLINE Reg sin_reg(Reg x) { return circular_reg<false>(x); }
PI_INLINE Reg cos_reg(Reg x) { return circular_reg<true>(x); }
