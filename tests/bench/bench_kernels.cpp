// Speed of every kernel of every ISA that this CPU has, beside what the machine can do, measured in the same run and interleaved.
// Usage: bench_kernels [repetitions [gguf [kernel set]]]; gguf: the element types of GGUF alone. Prints tables; medians of the repetitions. Standalone, one thread.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "kernels/elementary_vector.h"
#include "kernels/kernels.h"
#include "proved/pack_index.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using proofinfer::Kernels;

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Huge pages where the system offers them, filled so that every page is there.
float *map_floats(size_t count) {
  size_t huge = size_t(2) << 20, bytes = (count * sizeof(float) + huge - 1) / huge * huge;
  void *memory = aligned_alloc(huge, bytes);
  if (!memory) abort();
  madvise(memory, bytes, MADV_HUGEPAGE);
  float *floats = static_cast<float *>(memory);
  for (size_t i = 0; i < count; i++) floats[i] = static_cast<float>(i % 251) * 0.01f - 1.0f;
  return floats;
}

volatile float sink;

// ---- what the machine can do ----

// Reads [count] floats in kStreams streams of 256 bytes at a time, with additions that hide behind the loads.
#if defined(__x86_64__)
#define BENCH_READ(isa, target_flags, Reg, kLanes, set, add, load)                                                  \
  template <size_t kStreams>                                                                                        \
  __attribute__((target(target_flags), noinline)) void read_##isa(const float *p, size_t count) {                   \
    Reg acc[8];                                                                                                     \
    for (Reg & a : acc) a = set(0.0f);                                                                              \
    size_t each = count / kStreams / 64 * 64;                                                                       \
    for (size_t i = 0; i < each; i += 64)                                                                           \
      for (size_t s = 0; s < kStreams; s++)                                                                         \
        for (size_t k = 0; k < 64 / kLanes; k++) acc[k % 8] = add(acc[k % 8], load(p + s * each + i + k * kLanes)); \
    for (Reg & a : acc) sink = *reinterpret_cast<float *>(&a);                                                      \
  }                                                                                                                 \
  /* Independent products and sums: as many as hide their latency. */                                               \
  __attribute__((target(target_flags), noinline)) double peak_##isa() {                                             \
    constexpr size_t kSums = 12, kTurns = 2000000;                                                                  \
    Reg acc[kSums], w = set(1.0f + sink * 0.0f), x = set(0.5f + sink * 0.0f);                                       \
    for (Reg & a : acc) a = set(0.0f);                                                                              \
    double start = now();                                                                                           \
    for (size_t i = 0; i < kTurns; i++) {                                                                           \
      _Pragma("GCC unroll 12") for (size_t k = 0; k < kSums; k++) {                                                 \
        __asm__ volatile("" : "+x"(w)); /* so that no product is known from before */                               \
        acc[k] = add(acc[k], mul_##isa(w, x));                                                                      \
      }                                                                                                             \
    }                                                                                                               \
    double seconds = now() - start;                                                                                 \
    for (Reg & a : acc) sink = *reinterpret_cast<float *>(&a);                                                      \
    return 2.0 * kSums * kTurns * kLanes / seconds;                                                                 \
  }

__attribute__((target("sse2"))) inline __m128 mul_sse2(__m128 a, __m128 b) { return _mm_mul_ps(a, b); }
__attribute__((target("avx2"))) inline __m256 mul_avx2(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
__attribute__((target("avx512f"))) inline __m512 mul_avx512(__m512 a, __m512 b) { return _mm512_mul_ps(a, b); }
BENCH_READ(sse2, "sse2", __m128, 4, _mm_set1_ps, _mm_add_ps, _mm_load_ps)
BENCH_READ(avx2, "avx2", __m256, 8, _mm256_set1_ps, _mm256_add_ps, _mm256_load_ps)
BENCH_READ(avx512, "avx512f", __m512, 16, _mm512_set1_ps, _mm512_add_ps, _mm512_load_ps)

double peak_of(const std::string &isa) {
  if (isa.rfind("avx512", 0) == 0) return peak_avx512();
  if (isa == "avx2") return peak_avx2();
  return peak_sse2();
}

template <size_t kStreams>
void read_best(const float *p, size_t count) {
  static const std::string best = proofinfer::kernels_best()->name;
  if (best.rfind("avx512", 0) == 0) return read_avx512<kStreams>(p, count);
  if (best == "avx2") return read_avx2<kStreams>(p, count);
  read_sse2<kStreams>(p, count);
}
#else
template <size_t kStreams>
void read_best(const float *p, size_t count) {
  float acc[64] = {};
  size_t each = count / kStreams / 64 * 64;
  for (size_t i = 0; i < each; i += 64)
    for (size_t s = 0; s < kStreams; s++)
      for (size_t k = 0; k < 64; k++) acc[k] += p[s * each + i + k];
  for (float a : acc) sink = a;
}
double peak_of(const std::string &) { return NAN; }
#endif

// ---- interleaved medians ----

struct Contestant {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds{};
  double median() {
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }
};

void race(std::vector<Contestant> &all, int repetitions) {
  for (int i = 0; i < repetitions; i++)
    for (Contestant &c : all) {
      double start = now();
      c.run();
      c.seconds.push_back(now() - start);
    }
}

std::vector<const Kernels *> available() {
  std::vector<const Kernels *> tables;
  for (size_t i = 0; i < proofinfer::kernels_count(); i++)
    if (proofinfer::kernels_available(i)) tables.push_back(proofinfer::kernels_at(i));
  return tables;
}

void bench_matvec(size_t megabytes, size_t n, int repetitions) {
  size_t panel_count = megabytes * 1000000 / (n * 64), count = panel_count * n * 16;
  float *panels = map_floats(count);
  std::vector<float> x(n, 0.5f), out(panel_count * 16);
  std::vector<Contestant> all = {{"read, 1 stream", [=] { read_best<1>(panels, count); }},
                                 {"read, 4 streams", [=] { read_best<4>(panels, count); }},
                                 {"read, 8 streams", [=] { read_best<8>(panels, count); }}};
  for (const Kernels *k : available())
    all.push_back({std::string("matvec_f32 ") + k->name, [&, k] { k->matvec_f32(panels, panel_count, n, x.data(), out.data()); }});
  race(all, repetitions);
  double bound = std::min({all[0].median(), all[1].median(), all[2].median()});
  printf("\nmatvec_f32, %zu MB, n = %zu\n", megabytes, n);
  for (Contestant &c : all)
    printf("  %-22s %7.2f GB/s  %5.3f of the best read\n", c.name.c_str(), static_cast<double>(count) * 4e-9 / c.median(),
           bound / c.median());
  free(panels);
}

void bench_matmul(size_t panel_count, size_t n, size_t row_count, int repetitions) {
  float *panels = map_floats(panel_count * n * 16);
  std::vector<float> x((row_count + 7) / 8 * 8 * n, 0.25f), out(row_count * panel_count * 16);
  printf("\nmatmul_f32, %zu x %zu, %zu rows\n", panel_count * 16, n, row_count);
  for (const Kernels *k : available()) {
    std::vector<double> peaks, rates;
    double flops = 2.0 * static_cast<double>(panel_count * 16 * n * row_count);
    for (int i = 0; i < repetitions; i++) {
      if (strcmp(k->name, "scalar") == 0 && i > 0) break;
      double peak = peak_of(k->name), start = now();
      k->matmul_f32(panels, panel_count, n, x.data(), row_count, out.data(), panel_count * 16);
      rates.push_back(flops / (now() - start));
      peaks.push_back(peak);
    }
    std::sort(rates.begin(), rates.end());
    std::sort(peaks.begin(), peaks.end());
    double rate = rates[rates.size() / 2], peak = peaks[peaks.size() / 2];
    printf("  %-22s %7.2f GFLOP/s  %5.3f of the multiply-add peak %.1f\n", k->name, rate * 1e-9, rate / peak, peak * 1e-9);
  }
  free(panels);
}

// Int8 weights in groups, with activations quantized once.
struct Q8Problem {
  size_t panel_count, groups, group_size, row_count;
  size_t bytes() const { return panel_count * groups * pi_q8_block_bytes(group_size); }
  size_t blocks() const { return (row_count + 7) / 8; }
  float *memory = nullptr;
  const int8_t *panels = nullptr;
  std::vector<int8_t> q{};
  std::vector<float> scales{}, out{};
  std::vector<int32_t> sums{};
  void make() {
    memory = map_floats(bytes() / 4);  // any bytes are weights; scales must be numbers
    int8_t *weights = reinterpret_cast<int8_t *>(memory);
    for (size_t i = 0; i < bytes(); i++) weights[i] = static_cast<int8_t>(i % 251);
    for (size_t block = 0; block < panel_count * groups; block++)
      for (size_t row = 0; row < 16; row++) {
        float scale = 0.01f;
        memcpy(weights + block * pi_q8_block_bytes(group_size) + pi_q8_scale(group_size, row), &scale, sizeof scale);
      }
    panels = weights;
    q.assign(blocks() * 8 * groups * group_size, 3);
    scales.assign(blocks() * 8 * groups, 0.1f);
    sums.assign(blocks() * 8 * groups, static_cast<int32_t>(3 * group_size));
    out.resize(row_count * panel_count * 16);
  }
};

void bench_matvec_q8(size_t megabytes, size_t n, size_t group_size, int repetitions) {
  size_t panel_bytes = n / group_size * pi_q8_block_bytes(group_size);
  Q8Problem w{megabytes * 1000000 / panel_bytes, n / group_size, group_size, 1};
  w.make();
  const float *memory = w.memory;
  size_t count = w.bytes() / 4;
  std::vector<Contestant> all = {{"read, 1 stream", [=] { read_best<1>(memory, count); }},
                                 {"read, 4 streams", [=] { read_best<4>(memory, count); }},
                                 {"read, 8 streams", [=] { read_best<8>(memory, count); }}};
  for (const Kernels *k : available())
    all.push_back({std::string("matvec_q8 ") + k->name, [&, k] {
                     k->matvec_q8(w.panels, w.panel_count, w.groups, w.group_size, w.q.data(), w.scales.data(), w.sums.data(),
                                  w.out.data());
                   }});
  race(all, repetitions);
  double bound = std::min({all[0].median(), all[1].median(), all[2].median()});
  printf("\nmatvec_q8, %zu MB, n = %zu, groups of %zu\n", megabytes, n, group_size);
  for (Contestant &c : all)
    printf("  %-22s %7.2f GB/s  %5.3f of the best read\n", c.name.c_str(), static_cast<double>(w.bytes()) * 1e-9 / c.median(),
           bound / c.median());
  free(w.memory);
}

void bench_matmul_q8(size_t panel_count, size_t n, size_t group_size, size_t row_count, int repetitions) {
  Q8Problem w{panel_count, n / group_size, group_size, row_count};
  w.make();
  printf("\nmatmul_q8, %zu x %zu, groups of %zu, %zu rows\n", panel_count * 16, n, group_size, row_count);
  std::vector<Contestant> all;
  for (const Kernels *k : available())
    all.push_back({k->name, [&, k] {
                     k->matmul_q8(w.panels, w.panel_count, w.groups, w.group_size, w.q.data(), w.scales.data(), w.sums.data(), row_count,
                                  w.out.data(), panel_count * 16);
                   }});
  race(all, repetitions);
  double products = static_cast<double>(panel_count * 16 * n * row_count) * 1e-9;
  for (Contestant &c : all) {
    double median = c.median();  // sorts
    printf("  %-22s %7.2f G multiply-adds/s, best %7.2f\n", c.name.c_str(), products / median, products / c.seconds[0]);
  }
  free(w.memory);
}

// A matrix of one of GGUF's types, with activations quantized once.
struct TypedProblem {
  proofinfer::ElementType type;
  size_t panel_count, columns, row_count;
  size_t panel_bytes() const { return proofinfer::element_panel_bytes(type, columns); }
  size_t bytes() const { return panel_count * panel_bytes(); }
  size_t groups() const { return columns / 32; }
  bool half() const { return proofinfer::element_is_half(type); }
  float *memory = nullptr;
  const unsigned char *panels = nullptr;
  std::vector<int8_t> digits{};
  std::vector<float> x{}, scales{}, out{};
  std::vector<int32_t> sums{};
  void make() {
    memory = map_floats(bytes() / 4);
    unsigned char *place = reinterpret_cast<unsigned char *>(memory);
    for (size_t i = 0; i < bytes(); i += 2) {  // ordinary numbers in every 16-bit type
      uint16_t half = static_cast<uint16_t>((i * 40503 >> 4 & 0x8fff) | 0x3000);
      memcpy(place + i, &half, sizeof half);
    }
    panels = place;
    size_t lanes = (row_count + 7) / 8 * 8;
    digits.assign(lanes * columns * 2, 3);
    x.assign(lanes * columns, 0.25f);
    scales.assign(lanes * groups(), 0.1f);
    sums.assign(lanes * groups() * 2, (255 * 3 + 3) * 16);
    out.resize(row_count * panel_count * 16);
  }
  void multiply(const Kernels *k) {
    const uint16_t *halves = reinterpret_cast<const uint16_t *>(panels);
    if (half() && row_count == 1) {
      k->matvec_half(type, halves, panel_count, columns, x.data(), out.data());
    } else if (half()) {
      k->matmul_half(type, halves, panel_count, columns, x.data(), row_count, out.data(), panel_count * 16);
    } else if (row_count == 1) {
      k->matvec_blocks(type, panels, panel_count, groups(), digits.data(), scales.data(), sums.data(), out.data());
    } else {
      k->matmul_blocks(type, panels, panel_count, groups(), digits.data(), scales.data(), sums.data(), row_count, out.data(),
                       panel_count * 16);
    }
  }
};

constexpr proofinfer::ElementType kTyped[] = {
    proofinfer::ElementType::kF16,  proofinfer::ElementType::kBF16, proofinfer::ElementType::kQ8_0, proofinfer::ElementType::kQ4_0,
    proofinfer::ElementType::kQ4_1, proofinfer::ElementType::kQ5_0, proofinfer::ElementType::kQ5_1, proofinfer::ElementType::kQ4_K,
    proofinfer::ElementType::kQ5_K, proofinfer::ElementType::kQ6_K};

std::string wanted_set;  // empty: all

// The scalar set takes thousands of times as long as the fastest.
std::vector<const Kernels *> vector_sets() {
  std::vector<const Kernels *> tables = available();
  if (tables.size() > 1) tables.erase(tables.begin());
  if (!wanted_set.empty())
    tables.erase(std::remove_if(tables.begin(), tables.end(), [](const Kernels *k) { return k->name != wanted_set; }), tables.end());
  return tables;
}

void bench_matvec_types(size_t megabytes, size_t n, int repetitions) {
  printf("\nmatvec, %zu MB, n = %zu: of the best read\n", megabytes, n);
  for (proofinfer::ElementType type : kTyped) {
    TypedProblem w{type, 0, n, 1};
    w.panel_count = megabytes * 1000000 / w.panel_bytes();
    w.make();
    const float *memory = w.memory;
    size_t count = w.bytes() / 4;
    std::vector<Contestant> all = {{"read, 1 stream", [=] { read_best<1>(memory, count); }},
                                   {"read, 4 streams", [=] { read_best<4>(memory, count); }},
                                   {"read, 8 streams", [=] { read_best<8>(memory, count); }}};
    for (const Kernels *k : vector_sets()) all.push_back({k->name, [&, k] { w.multiply(k); }});
    race(all, repetitions);
    double bound = std::min({all[0].median(), all[1].median(), all[2].median()});
    printf("  %-5s read %6.2f GB/s", proofinfer::element_name(type), static_cast<double>(w.bytes()) * 1e-9 / bound);
    for (size_t i = 3; i < all.size(); i++) printf("  %s %5.3f", all[i].name.c_str(), bound / all[i].median());
    printf("\n");
    free(w.memory);
  }
}

void bench_matmul_types(size_t panel_count, size_t n, size_t row_count, int repetitions) {
  printf("\nmatmul, %zu x %zu, %zu rows: G multiply-adds/s\n", panel_count * 16, n, row_count);
  for (proofinfer::ElementType type : kTyped) {
    if (n % proofinfer::element_block_columns(type) != 0) continue;
    TypedProblem w{type, panel_count, n, row_count};
    w.make();
    std::vector<Contestant> all;
    for (const Kernels *k : vector_sets()) all.push_back({k->name, [&, k] { w.multiply(k); }});
    race(all, repetitions);
    printf("  %-5s", proofinfer::element_name(type));
    for (Contestant &c : all)
      printf("  %s %7.2f", c.name.c_str(), static_cast<double>(panel_count * 16 * n * row_count) * 1e-9 / c.median());
    printf("\n");
    free(w.memory);
  }
}

// Rows of a file into panels, from the cache into the cache.
void bench_pack_types(size_t n, int repetitions) {
  printf("\npack, 16 rows of %zu: GB/s of the file\n", n);
  const Kernels *k = proofinfer::kernels_best();
  for (proofinfer::ElementType type : kTyped) {
    TypedProblem w{type, 1, n, 1};
    w.make();
    size_t bytes = 16 * n / proofinfer::element_block_columns(type) * proofinfer::element_block_bytes(type);
    std::vector<unsigned char> rows(bytes, 0x35);
    unsigned char *panel = reinterpret_cast<unsigned char *>(w.memory);
    std::vector<Contestant> all = {{k->name, [&] {
                                      for (int i = 0; i < 20; i++) {
                                        if (w.half()) {
                                          k->pack_half(reinterpret_cast<const uint16_t *>(rows.data()), 16, n,
                                                       reinterpret_cast<uint16_t *>(panel));
                                        } else {
                                          k->pack_blocks(type, rows.data(), 16, n / 32, 0, panel);
                                        }
                                      }
                                    }}};
    race(all, repetitions);
    printf("  %-5s %6.2f\n", proofinfer::element_name(type), static_cast<double>(bytes) * 20e-9 / all[0].median());
    free(w.memory);
  }
}

// One line: how long one element (or position) takes.
void bench_small(const char *what, size_t elements, int repetitions, const std::function<void(const Kernels *, size_t)> &run) {
  printf("  %-34s", what);
  for (size_t index = 0; index < proofinfer::kernels_count(); index++) {
    if (!proofinfer::kernels_available(index)) continue;
    std::vector<double> times;
    for (int i = 0; i < repetitions; i++) {
      double start = now();
      for (int j = 0; j < 20; j++) run(proofinfer::kernels_at(index), index);
      times.push_back((now() - start) / 20);
    }
    std::sort(times.begin(), times.end());
    printf("  %s %8.3f", proofinfer::kernels_at(index)->name, times[times.size() / 2] * 1e9 / static_cast<double>(elements));
  }
  printf("\n");
}

void bench_elements(int repetitions) {
  constexpr size_t n = 768, kHead = 48, kPositions = 256, kHeads = 6;
  float *buffer = map_floats(1 << 20);
  std::vector<float> x(8 * n), y(8 * n), q(kHead, 0.1f), weights(kPositions, 0.01f), out(8 * n);
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i % 97) * 0.05f - 2.0f;
  y = x;
  printf("\nns an element\n");
  bench_small("expf", n, repetitions,
              [&](const Kernels *, size_t i) { proofinfer::elementary_forms_at(i)->exp_f32(x.data(), out.data(), n); });
  bench_small("sinf", n, repetitions,
              [&](const Kernels *, size_t i) { proofinfer::elementary_forms_at(i)->sin_f32(x.data(), out.data(), n); });
  bench_small("swiglu, 768", n, repetitions, [&](const Kernels *k, size_t) {
    memcpy(out.data(), x.data(), n * sizeof(float));
    k->swiglu_f32(out.data(), y.data(), n);
  });
  bench_small("rmsnorm, 1 row of 288", 288, repetitions,
              [&](const Kernels *k, size_t) { k->rmsnorm_f32(x.data(), 1, n, y.data(), 288, 1e-5f, out.data(), n); });
  bench_small("rmsnorm, 8 rows of 288", 8 * 288, repetitions,
              [&](const Kernels *k, size_t) { k->rmsnorm_f32(x.data(), 8, n, y.data(), 288, 1e-5f, out.data(), n); });
  bench_small("rope, 6 heads of 48", kHeads * kHead, repetitions,
              [&](const Kernels *k, size_t) { k->rope_f32(out.data(), kHeads, kHead, q.data(), q.data()); });
  bench_small("rope angles, 24", 24, repetitions,
              [&](const Kernels *k, size_t) { k->rope_angles_f32(x.data(), 24, 200.0f, out.data(), out.data() + 24); });
  bench_small("softmax, 1 row of 256", kPositions, repetitions, [&](const Kernels *k, size_t) {
    memcpy(out.data(), x.data(), kPositions * sizeof(float));
    k->softmax_f32(out.data(), 1, kPositions, kPositions);
  });
  bench_small("softmax, 6 rows of 256", kHeads * kPositions, repetitions, [&](const Kernels *k, size_t) {
    memcpy(out.data(), x.data(), kHeads * kPositions * sizeof(float));
    k->softmax_f32(out.data(), kHeads, kPositions, kPositions);
  });
  printf("ns a position of a head of 48\n");
  bench_small("scores, 4 blocks (a page)", 64, repetitions,
              [&](const Kernels *k, size_t) { k->scores_f32(q.data(), buffer, 4, kHead, 6.9f, out.data()); });
  bench_small("mix, 64 positions (a page)", 64, repetitions,
              [&](const Kernels *k, size_t) { k->mix_f32(weights.data(), buffer, 64, kHead, out.data()); });
  printf("ns a weight\n");
  bench_small("pack, 16 rows of 1024", 16 * 1024, repetitions,
              [&](const Kernels *k, size_t) { k->pack_f32(buffer, 16, 1024, buffer + (1 << 19)); });
  free(buffer);
}

void bench_typed(int repetitions) {
  bench_matvec_types(60, 768, repetitions);
  // SmolLM2's shapes, and one that K types can have
  bench_matmul_types(36, 576, 256, repetitions);
  bench_matmul_types(96, 576, 256, repetitions);
  bench_matmul_types(36, 1536, 256, repetitions);
  bench_pack_types(1536, repetitions);
}

}  // namespace

int main(int argc, char **argv) {
  int repetitions = argc > 1 ? atoi(argv[1]) : 15;
  if (repetitions < 1) repetitions = 1;
  if (argc > 2) {
    if (argc > 3) wanted_set = argv[3];
    bench_typed(repetitions);
    return 0;
  }
  bench_matvec(60, 288, repetitions);
  bench_matvec(400, 768, repetitions);
  bench_matmul(54, 288, 200, repetitions);
  bench_matmul(48, 768, 200, repetitions);
  bench_matmul(48, 2048, 200, repetitions);
  for (size_t rows : {2, 4, 8}) bench_matmul(2000, 768, rows, repetitions);
  bench_matvec_q8(16, 288, 32, repetitions);
  bench_matvec_q8(120, 768, 64, repetitions);
  for (size_t rows : {8, 200}) {
    bench_matmul_q8(54, 288, 32, rows, repetitions);
    bench_matmul_q8(48, 768, 64, rows, repetitions);
  }
  bench_typed(repetitions);
  bench_elements(repetitions * 5);
  return 0;
}
