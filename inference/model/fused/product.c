/* Products of uint8 rows with int8 weights, summed exactly in int32.
 *
 * Weights are packed in blocks of BLOCK outputs: [outputs / BLOCK][inputs / 4][BLOCK][4], the order in which the
 * dot-product instructions of x86 (VNNI) and arm64 take them. So a thread reads one stream from memory, and
 * asks for it ahead of time: with a few rows the products wait for memory, with many for the multipliers,
 * and only weights that have arrived before they are needed let one hide behind the other.
 *
 * Sums of integers do not depend on their order: all variants below, and any number of rows and threads, give
 * the same bits.
 */
#include <stdint.h>
#include <string.h>

#if defined(__AVX512VNNI__) || defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif

#define BLOCK 32        /* outputs */
#define SUPER_ROWS 128  /* rows whose sums are kept at once */
#define PART 512        /* inputs that several groups of rows read from the first-level cache */
#define AHEAD 32768     /* bytes; measured best of 2 to 32 KiB */
#define ZERO_POINT 128

/* VECTORS registers hold the sums of one row; DOT adds four products to each sum. */
#if defined(__AVX512VNNI__)
#define VECTORS 2
#define ROWS 14
typedef __m512i sums;
#define ZERO() _mm512_setzero_si512()
#define LOAD(p) _mm512_loadu_si512(p)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define FOUR(x) _mm512_set1_epi32(x)
#define DOT(sum, row, weight) _mm512_dpbusd_epi32(sum, row, weight)
#elif defined(__AVX2__)
#define VECTORS 4
#define ROWS 2
typedef __m256i sums;
#define ZERO() _mm256_setzero_si256()
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define FOUR(x) _mm256_set1_epi32(x)
#if defined(__AVXVNNI__)
#define DOT(sum, row, weight) _mm256_dpbusd_avx_epi32(sum, row, weight)
#else
/* Two products of u8 and s8 can exceed 16 bits. The low seven bits and the top bit apart cannot. */
static inline sums DOT(sums sum, sums row, sums weight) {
  sums low = _mm256_maddubs_epi16(_mm256_and_si256(row, _mm256_set1_epi8(127)), weight);
  sums top = _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(row, 7), _mm256_set1_epi8(1)), weight);
  low = _mm256_madd_epi16(low, _mm256_set1_epi16(1));
  top = _mm256_madd_epi16(top, _mm256_set1_epi16(128));
  return _mm256_add_epi32(sum, _mm256_add_epi32(low, top));
}
#endif
#elif defined(__ARM_FEATURE_DOTPROD)
#define VECTORS 8
#define ROWS 2
typedef int32x4_t sums;
#define ZERO() vdupq_n_s32(0)
#define LOAD(p) vld1q_s32((const int32_t *)(p))
#define STORE(p, v) vst1q_s32((int32_t *)(p), v)
#define FOUR(x) vdupq_n_s32((int32_t)((uint32_t)(x) ^ 0x80808080u)) /* signed: without the zero point */
#define DOT(sum, row, weight) vdotq_s32(sum, vreinterpretq_s8_s32(row), vreinterpretq_s8_s32(weight))
#define SIGNED_ROWS
#else
#define VECTORS BLOCK
#define ROWS 1
typedef int32_t sums;
#define ZERO() 0
#define LOAD(p) load_four(p)
#define STORE(p, v) (*(int32_t *)(p) = (v))
#define FOUR(x) (x)
static inline int32_t load_four(const void *p) {
  int32_t value;
  memcpy(&value, p, 4);
  return value;
}
static inline sums DOT(sums sum, sums row, sums weight) {
  for (int i = 0; i < 32; i += 8) sum += (int32_t)(uint8_t)(row >> i) * (int8_t)(weight >> i);
  return sum;
}
#endif

#define WIDTH (BLOCK / VECTORS) /* sums in one register */

/* Sums of `rows` rows over `count` inputs, added to out [rows, BLOCK] unless this is the first part. */
static inline __attribute__((always_inline)) void tile(const uint8_t *q, int64_t stride, const int8_t *weight,
                                                       int count, int rows, int first, int fetch,
                                                       int32_t *out) {
  sums sum[ROWS * VECTORS];
#pragma GCC unroll 32
  for (int i = 0; i < rows * VECTORS; i++) sum[i] = first ? ZERO() : LOAD(out + i * WIDTH);
  for (int k = 0; k < count; k += 4) {
    const int8_t *at = weight + (int64_t)k * BLOCK;
    sums loaded[VECTORS];
#pragma GCC unroll 32
    for (int v = 0; v < VECTORS; v++) loaded[v] = LOAD(at + v * WIDTH * 4);
    if (fetch) {
      __builtin_prefetch(at + AHEAD, 0, 2);
      __builtin_prefetch(at + AHEAD + 64, 0, 2);
    }
#pragma GCC unroll 32
    for (int r = 0; r < rows; r++) {
      int32_t four;
      memcpy(&four, q + r * stride + k, 4);
      sums row = FOUR(four);
#pragma GCC unroll 32
      for (int v = 0; v < VECTORS; v++) sum[r * VECTORS + v] = DOT(sum[r * VECTORS + v], row, loaded[v]);
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < rows * VECTORS; i++) STORE(out + i * WIDTH, sum[i]);
}

/* One function for each number of rows: the sums must be registers. */
#define TILE(N)                                                                                          \
  static void tile_##N(const uint8_t *q, int64_t stride, const int8_t *weight, int count, int first, int fetch, \
                       int32_t *out) {                                                                   \
    if (fetch)                                                                                           \
      tile(q, stride, weight, count, N, first, 1, out);                                                  \
    else                                                                                                 \
      tile(q, stride, weight, count, N, first, 0, out);                                                  \
  }
typedef void (*tile_function)(const uint8_t *, int64_t, const int8_t *, int, int, int, int32_t *);
TILE(1)
#if ROWS > 1
TILE(2)
#endif
#if ROWS > 2
TILE(3) TILE(4) TILE(5) TILE(6) TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12) TILE(13) TILE(14)
#endif
static const tile_function tiles[ROWS + 1] = {
    0, tile_1,
#if ROWS > 1
    tile_2,
#endif
#if ROWS > 2
    tile_3, tile_4, tile_5, tile_6, tile_7, tile_8, tile_9, tile_10, tile_11, tile_12, tile_13, tile_14,
#endif
};

/* At most SUPER_ROWS rows with one block of weights. */
static void block_sums(const uint8_t *q, int rows, int inputs, const int8_t *weight, int fetch, int32_t *sum) {
  int groups = (rows + ROWS - 1) / ROWS, part = groups == 1 ? inputs : PART;
  for (int k = 0; k < inputs; k += part) {
    int count = inputs - k < part ? inputs - k : part;
    for (int g = 0; g < groups; g++) {
      int start = rows * g / groups, stop = rows * (g + 1) / groups;
      tiles[stop - start](q + (int64_t)start * inputs + k, inputs, weight + (int64_t)k * BLOCK, count, k == 0,
                          fetch && g == 0, sum + start * BLOCK);
    }
  }
}

/* weight int8 [outputs, inputs] -> packed, zeros behind the last output; offset: what the rows' zero point adds
 * to each sum. inputs must be a multiple of 4. */
void draftline_pack(const int8_t *weight, int outputs, int inputs, int8_t *packed, int32_t *offset) {
  for (int n = 0; n < outputs; n += BLOCK) {
    int8_t *block = packed + (int64_t)n * inputs;
    for (int i = 0; i < BLOCK; i++) {
      const int8_t *row = weight + (int64_t)(n + i) * inputs;
      int32_t total = 0;
      for (int k = 0; k < inputs; k += 4) {
        int8_t *four = block + (int64_t)k * BLOCK + i * 4;
        if (n + i < outputs) {
          memcpy(four, row + k, 4);
          total += four[0] + four[1] + four[2] + four[3];
        } else {
          memset(four, 0, 4);
        }
      }
#ifdef SIGNED_ROWS
      total = 0;
#endif
      if (n + i < outputs) offset[n + i] = total * ZERO_POINT;
    }
  }
}

/* q [rows, inputs] around ZERO_POINT -> y [rows, outputs] = sums * scale of the output. All threads of the
 * region that calls it take part. */
void draftline_product(const uint8_t *q, int rows, int inputs, int outputs, const int8_t *weight,
                       const int32_t *offset, const float *scale, float *y) {
#pragma omp for schedule(static)
  for (int n = 0; n < outputs; n += BLOCK) {
    int32_t sum[SUPER_ROWS * BLOCK] __attribute__((aligned(64)));
    int width = outputs - n < BLOCK ? outputs - n : BLOCK;
    for (int start = 0; start < rows; start += SUPER_ROWS) {
      int some = rows - start < SUPER_ROWS ? rows - start : SUPER_ROWS;
      block_sums(q + (int64_t)start * inputs, some, inputs, weight + (int64_t)n * inputs, start == 0, sum);
      for (int r = 0; r < some; r++) {
        float *restrict to = y + (int64_t)(start + r) * outputs + n;
        const int32_t *from = sum + r * BLOCK;
        if (width == BLOCK)
          for (int i = 0; i < BLOCK; i++) to[i] = (float)(from[i] - offset[n + i]) * scale[n + i];
        else
          for (int i = 0; i < width; i++) to[i] = (float)(from[i] - offset[n + i]) * scale[n + i];
      }
    }
  }
}
