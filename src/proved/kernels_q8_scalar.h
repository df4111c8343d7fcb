/* The scalar Q8_0 kernels: the definition of right, and the fallback. Contracts in words: kernels/kernels.h; layout:
 * proved/pack_index.h; here they are exact and proved (docs/proof.md). */
#ifndef PROOFINFER_PROVED_KERNELS_Q8_SCALAR_H
#define PROOFINFER_PROVED_KERNELS_Q8_SCALAR_H

#include <stddef.h>
#include <stdint.h>

#include "proved/elementary.h"
#include "proved/pack_index.h"

#ifdef __cplusplus
extern "C" {
#endif

/*@ // Four products, and the exact dot of one row of a block with a quantized group: `count` dwords of four, those of q `q_step` bytes apart.
    logic integer Dot4{L}(int8_t *w, int8_t *x) = w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + w[3] * x[3];
    logic integer GroupDot{L}(int8_t *block, integer row, int8_t *q, integer q_step, integer count) =
      count <= 0 ? 0
                 : GroupDot(block, row, q, q_step, count - 1) + Dot4(block + Q8Weight(row, 4 * (count - 1)), q + (count - 1) * q_step);
    // acc = 0; for groups ascending below `count`: acc = acc + ((float)dot * weight scale) * activation scale.
    logic float RowSumQ8{L}(int8_t *panel, integer group_size, integer row, int8_t *q, integer q_step, float *scales, integer scale_step,
                            integer count) =
      count <= 0 ? 0.0f
                 : \add_float(RowSumQ8(panel, group_size, row, q, q_step, scales, scale_step, count - 1),
                              \mul_float(\mul_float((float)GroupDot(panel + (count - 1) * Q8BlockBytes(group_size), row,
                                                                    q + (count - 1) * (Q8Padded(group_size) / 4) * q_step, q_step,
                                                                    Q8Padded(group_size) / 4),
                                                    FloatAt(panel + ((count - 1) * Q8BlockBytes(group_size) + Q8Scale(group_size, row)))),
                                         scales[(count - 1) * scale_step]));
    logic integer ByteSum{L}(int8_t *q, integer count) = count <= 0 ? 0 : ByteSum(q, count - 1) + q[count - 1]; */

/*@ requires 1 <= group_size <= PI_MAX_GROUP_SIZE && group_count * (group_size + 3) <= SIZE_MAX;
    requires \valid_read(x + (0 .. group_count * group_size - 1)) && \valid(q + (0 .. group_count * Q8Padded(group_size) - 1));
    requires \valid(scales + (0 .. group_count - 1)) && \valid(sums + (0 .. group_count - 1));
    requires \separated(x + (0 .. group_count * group_size - 1), scales + (0 .. group_count - 1));
    terminates \true;
    assigns q[0 .. group_count * Q8Padded(group_size) - 1], scales[0 .. group_count - 1], sums[0 .. group_count - 1]; */
void pi_quantize_q8_scalar(const float *x, size_t group_count, size_t group_size, int8_t *q, float *scales, int32_t *sums);

/*@ requires 1 <= group_size <= PI_MAX_GROUP_SIZE && 1 <= group_count;
    requires panel_count * (group_count * Q8BlockBytes(group_size)) <= SIZE_MAX && panel_count * PI_PANEL_ROWS <= SIZE_MAX;
    requires group_count * Q8BlockBytes(group_size) <= SIZE_MAX && group_count * Q8Padded(group_size) <= SIZE_MAX;
    requires \valid_read(panels + (0 .. panel_count * (group_count * Q8BlockBytes(group_size)) - 1));
    requires \valid_read(q + (0 .. group_count * Q8Padded(group_size) - 1)) && \valid_read(scales + (0 .. group_count - 1));
    requires \valid(out + (0 .. panel_count * PI_PANEL_ROWS - 1));
    requires \separated(out + (0 .. panel_count * PI_PANEL_ROWS - 1), scales + (0 .. group_count - 1));
    terminates \true;
    assigns out[0 .. panel_count * PI_PANEL_ROWS - 1]; */
void pi_matvec_q8_scalar(const int8_t *panels, size_t panel_count, size_t group_count, size_t group_size, const int8_t *q,
                         const float *scales, const int32_t *sums, float *out);

/*@ requires 1 <= group_size <= PI_MAX_GROUP_SIZE && 1 <= group_count;
    requires panel_count * (group_count * Q8BlockBytes(group_size)) <= SIZE_MAX && panel_count * PI_PANEL_ROWS <= out_stride;
    requires group_count * Q8BlockBytes(group_size) <= SIZE_MAX && row_count * out_stride <= SIZE_MAX;
    requires (row_count + 7) / 8 * (group_count * Q8Padded(group_size) * 8) <= SIZE_MAX && row_count + 7 <= SIZE_MAX;
    requires group_count * Q8Padded(group_size) * 8 <= SIZE_MAX && group_count * 8 <= SIZE_MAX;
    requires \valid_read(panels + (0 .. panel_count * (group_count * Q8BlockBytes(group_size)) - 1));
    requires \valid_read(q_blocks + (0 .. (row_count + 7) / 8 * (group_count * Q8Padded(group_size) * 8) - 1));
    requires \valid_read(scales_blocks + (0 .. (row_count + 7) / 8 * (group_count * 8) - 1));
    requires row_count > 0 ==> \valid(out + (0 .. (row_count - 1) * out_stride + panel_count * PI_PANEL_ROWS - 1));
    requires row_count > 0 ==> \separated(out + (0 .. (row_count - 1) * out_stride + panel_count * PI_PANEL_ROWS - 1),
                                          scales_blocks + (0 .. (row_count + 7) / 8 * (group_count * 8) - 1));
    terminates \true;
    assigns out[0 .. (row_count - 1) * out_stride + panel_count * PI_PANEL_ROWS - 1]; */
void pi_matmul_q8_scalar(const int8_t *panels, size_t panel_count, size_t group_count, size_t group_size, const int8_t *q_blocks,
                         const float *scales_blocks, const int32_t *sums_blocks, size_t row_count, float *out, size_t out_stride);

/*@ requires 1 <= group_size <= PI_MAX_GROUP_SIZE && 1 <= row_count && lane + row_count <= PI_PANEL_ROWS && row_count * group_count <= SIZE_MAX;
    requires group_count * Q8BlockBytes(group_size) <= SIZE_MAX && row_count * (group_count * group_size) <= SIZE_MAX;
    requires \valid_read(rows + (0 .. row_count * (group_count * group_size) - 1)) && \valid_read(scales + (0 .. row_count * group_count - 1));
    requires \valid(panel + (0 .. group_count * Q8BlockBytes(group_size) - 1));
    requires \separated(panel + (0 .. group_count * Q8BlockBytes(group_size) - 1), rows + (0 .. row_count * (group_count * group_size) - 1));
    terminates \true;
    assigns panel[0 .. group_count * Q8BlockBytes(group_size) - 1]; */
void pi_pack_q8_scalar(const int8_t *rows, const float *scales, size_t row_count, size_t group_count, size_t group_size, size_t lane,
                       int8_t *panel);

#ifdef __cplusplus
}
#endif

#endif
