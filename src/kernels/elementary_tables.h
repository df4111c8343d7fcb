/* Constants of the elementary functions (docs/arithmetic.md), read by the scalar and the vector forms. They are those of Arm Optimized
 * Routines, where glibc's float functions come from since 2.28; other constants would give other bits. */
#ifndef PROOFINFER_KERNELS_ELEMENTARY_TABLES_H
#define PROOFINFER_KERNELS_ELEMENTARY_TABLES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adding and subtracting it rounds a double of magnitude below 2^51 to an integer, which the low bits of the sum are. */
#define PI_ROUND_SHIFT 0x1.8p52

/* expf: 2^(k/32) times a polynomial. Outside of [PI_EXP_MIN, PI_EXP_MAX] the result is 0 or infinity. */
#define PI_EXP_MAX 0x1.62e42ep6f
#define PI_EXP_MIN (-0x1.9fe368p6f)
#define PI_EXP_SCALE (32 * 0x1.71547652b82fep+0)
#define PI_EXP_C0 (0x1.c6af84b912394p-5 / 32768)
#define PI_EXP_C1 (0x1.ebfce50fac4f3p-3 / 1024)
#define PI_EXP_C2 (0x1.62e42ff0c52d6p-1 / 32)

/* powf: the polynomial of its 2^r, with r in units of 1 instead of 1/32, and of its log2. */
#define PI_POW_E0 0x1.c6af84b912394p-5
#define PI_POW_E1 0x1.ebfce50fac4f3p-3
#define PI_POW_E2 0x1.62e42ff0c52d6p-1
#define PI_POW_A0 0x1.27616c9496e0bp-2
#define PI_POW_A1 (-0x1.71969a075c67ap-2)
#define PI_POW_A2 0x1.ec70a6ca7baddp-2
#define PI_POW_A3 (-0x1.7154748bef6c8p-1)
#define PI_POW_A4 0x1.71547652ab82bp0

/* sinf and cosf. */
#define PI_SIN_S1 (-0x1.555545995a603p-3)
#define PI_SIN_S2 0x1.1107605230bc4p-7
#define PI_SIN_S3 (-0x1.994eb3774cf24p-13)
#define PI_COS_C0 1.0
#define PI_COS_C1 (-0x1.ffffffd0c621cp-2)
#define PI_COS_C2 0x1.55553e1068f19p-5
#define PI_COS_C3 (-0x1.6c087e89a359dp-10)
#define PI_COS_C4 0x1.99343027bf8c3p-16
#define PI_QUARTER_TURNS 0x1.45F306DC9C883p+23 /* 2/pi in units of 2^-24 */
#define PI_HALF_PI 0x1.921FB54442D18p0
#define PI_HALF_PI_FIXED 0x1.921FB54442D18p-62 /* pi/2 in units of 2^62 */

/* The top 12 bits but the sign, by which magnitudes are told apart. */
#define PI_TOP_TINY 0x398u     /* 2^-12 */
#define PI_TOP_PI_4 0x3f4u     /* pi/4 */
#define PI_TOP_120 0x42fu      /* 120 */
#define PI_TOP_INFINITY 0x7f8u /* infinity and NaN */

/* Bits of the double nearest 2^(i/32), minus i << 47: adding k << 47 makes it 2^(k/32) for every k = i modulo 32. */
extern const uint64_t pi_exp2_table[32];

typedef struct {
  double inverse, log2; /* 1/c and log2 c for a c near the middle of the i-th sixteenth of the floats from 0x3f330000 to 0x3fb30000 */
} pi_log2_entry;
extern const pi_log2_entry pi_log2_table[16];

/* The 32 bits of the binary expansion of 4/pi that end at byte i. */
extern const uint32_t pi_four_over_pi_table[24];

#ifdef __cplusplus
}
#endif

#endif
