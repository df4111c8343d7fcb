/* Where the block types keep their elements in a panel of 16 rows. A group is 32 columns of the 16 rows, its payload unsigned numbers of 4, 5, 6 or
 * signed ones of 8 bits. Legacy types (Q4_0 to Q8_0): a block is one group: payload, the float16 scales of the rows, the float16 minima. K types: a
 * block is 8 groups: float16 scales, float16 minima, 8-bit scales and minima, payloads. */
#ifndef PROOFINFER_KERNELS_BLOCK_LAYOUT_H
#define PROOFINFER_KERNELS_BLOCK_LAYOUT_H

#include <stddef.h>

#define PI_GROUP_COLUMNS 32
#define PI_K_GROUPS 8

/* Activations are whole numbers q within -PI_MOST_Q to PI_MOST_Q, kept as two digits: q = PI_DIGIT_BASE * high + low, each digit within -127 to 127,
 * which makes them unique. A group of an activation is its 32 high digits, then its 32 low ones. */
#define PI_DIGIT_BASE 255
#define PI_MOST_Q 32512 /* 255 * 127 + 127 */
#define PI_GROUP_DIGITS (2 * PI_GROUP_COLUMNS)

/* Bytes of the payload of a group: 4 bits in 256 bytes, the fifth bit in 64 more, the fifth and sixth in 128 more, 8 bits in 512. */
#define PI_PAYLOAD_4 256
#define PI_PAYLOAD_5 320
#define PI_PAYLOAD_6 384
#define PI_PAYLOAD_8 512
#define PI_HIGH_BITS 256 /* where the fifth and sixth bits begin */

/* Bytes of one 16-bit, and of one 8-bit number for each row. */
#define PI_HALVES 32
#define PI_BYTES 16

/* Bytes of a block of a K type before its payloads, and where in it the 8-bit scales and minima begin. */
#define PI_K_SCALES (2 * PI_HALVES)
#define PI_K_MINIMA (PI_K_SCALES + PI_K_GROUPS * PI_BYTES)
#define PI_K_HEADER (PI_K_MINIMA + PI_K_GROUPS * PI_BYTES)
#define PI_Q6K_SCALES PI_HALVES
#define PI_Q6K_HEADER (PI_Q6K_SCALES + 2 * PI_K_GROUPS * PI_BYTES)

/* The byte that holds the low four bits of a column (0 to 31) of a row: columns 0 to 15 in the lower half of the byte, 16 to 31 in the upper. */
static inline size_t pi_nibble_place(size_t row, size_t column) { return column / 4 % 4 * 64 + row * 4 + column % 4; }
static inline unsigned pi_nibble_shift(size_t column) { return (unsigned)(column / 16 * 4); }

/* The byte and the bit in it of the fifth bit of a column, counted from PI_HIGH_BITS. */
static inline size_t pi_fifth_place(size_t row, size_t column) { return row * 4 + column % 4; }
static inline unsigned pi_fifth_shift(size_t column) { return (unsigned)(column / 4); }

/* The byte and the first of the two bits in it of the fifth and sixth bit. */
static inline size_t pi_sixth_place(size_t row, size_t column) { return column / 16 * 64 + row * 4 + column % 4; }
static inline unsigned pi_sixth_shift(size_t column) { return (unsigned)(column / 4 % 4 * 2); }

/* The byte of a column of 8 bits. */
static inline size_t pi_byte_place(size_t row, size_t column) { return column / 4 * 64 + row * 4 + column % 4; }

#endif
