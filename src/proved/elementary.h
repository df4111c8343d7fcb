/* The library's own elementary functions, equal to glibc's on every input they are used on (docs/arithmetic.md). The proof tool sees
 * these declarations only; they read nothing but their argument. */
#ifndef PROOFINFER_PROVED_ELEMENTARY_H
#define PROOFINFER_PROVED_ELEMENTARY_H

#ifdef __cplusplus
extern "C" {
#endif

/*@ assigns \nothing; */
float pi_expf(float x);
/*@ assigns \nothing; */
float pi_sinf(float x);
/*@ assigns \nothing; */
float pi_cosf(float x);
/*@ assigns \nothing; */
float pi_powf(float x, float y); /* x normal and > 0, -150 < y * log2(x) < 128 */
/*@ assigns \nothing; */
float pi_sqrtf(float x);

#ifdef __cplusplus
}
#endif

#endif
