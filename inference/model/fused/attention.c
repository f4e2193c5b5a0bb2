/* Causal attention over a KV slot, in float32; a row's result depends on that row alone.
 *
 * Everything here works on whole vectors, without scalar rests, so that products and sums may be contracted
 * (-ffp-contract=fast): all rows run the same instructions. (Numbers are taken to be finite: a later row of
 * the block counts with weight 0.)
 */
#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#define LANES 16
#define DOT_QUERIES 8 /* queries that share one pass over keys in registers */
#define MIX_QUERIES 4
#define KEY_GROUP 16 /* numbers of an int8 key that share a scale; as in rows.c */

typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t whole_lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int8_t small_lanes __attribute__((vector_size(16), aligned(1), may_alias));

static inline lanes all(float x) { return x - (lanes){0}; }
static inline lanes pick(whole_lanes mask, lanes yes, lanes no) {
  return (lanes)((mask & (whole_lanes)yes) | (~mask & (whole_lanes)no));
}

/* exp of numbers that are not positive, by Cody and Waite's reduction and the polynomial of Cephes' expf. */
static inline lanes exponential(lanes x) {
  x = pick(x < -87.0f, all(-87.0f), x);
  lanes magic = all(12582912.0f); /* 1.5 * 2**23: adding it rounds to a whole number */
  lanes shifted = x * 1.44269504088896341f + magic;
  lanes whole = shifted - magic;
  lanes r = x - whole * 0.693359375f;
  r = r + whole * 2.12194440e-4f;
  lanes p = all(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + (r + 1.0f);
  whole_lanes power = ((whole_lanes)shifted - (whole_lanes)magic + 127) << 23;
  return p * (lanes)power;
}

/* Products of DOT_QUERIES queries with LANES keys, given transposed [dim, LANES]. */
static inline void dot(const float *transposed, int dim, const float *const *query, int count, float factor,
                       float *const *out) {
  lanes sum[DOT_QUERIES];
  for (int j = 0; j < DOT_QUERIES; j++) sum[j] = all(0.0f);
  for (int d = 0; d < dim; d++) {
    lanes key = *(const lanes *)(transposed + d * LANES);
#pragma GCC unroll 8
    for (int j = 0; j < DOT_QUERIES; j++) sum[j] = key * query[j][d] + sum[j];
  }
  for (int j = 0; j < count; j++) *(lanes *)out[j] = sum[j] * factor;
}

/* Scores of n positions -> exp(score - top), zeros behind them; 1 / sum. */
static inline float softmax(float *score, int64_t n, int64_t length) {
  for (int64_t i = n; i < length; i++) score[i] = -INFINITY;
  lanes most = all(-INFINITY), total = all(0.0f);
  for (int64_t i = 0; i < length; i += LANES) {
    lanes s = *(lanes *)(score + i);
    most = pick(s > most, s, most);
  }
  float top = most[0], sum = 0.0f;
  for (int l = 1; l < LANES; l++) top = most[l] > top ? most[l] : top;
  for (int64_t i = 0; i < length; i += LANES) {
    lanes s = *(lanes *)(score + i);
    lanes e = pick(s == all(-INFINITY), all(0.0f), exponential(s - top));
    *(lanes *)(score + i) = e;
    total += e;
  }
  for (int l = 0; l < LANES; l++) sum += total[l];
  return 1.0f / sum;
}

/* Sums of n values weighted by MIX_QUERIES queries' softmax, positions in order; 4 * LANES columns. */
static inline void mix(const float *value, int dim, int64_t n, const float *const *weight, int count,
                       const float *inverse, float *const *out) {
  lanes sum[MIX_QUERIES][4];
  for (int j = 0; j < MIX_QUERIES; j++)
    for (int c = 0; c < 4; c++) sum[j][c] = all(0.0f);
  for (int64_t p = 0; p < n; p++) {
    const lanes *row = (const lanes *)(value + p * dim);
    lanes a = row[0], b = row[1], c = row[2], d = row[3];
#pragma GCC unroll 4
    for (int j = 0; j < MIX_QUERIES; j++) {
      float w = weight[j][p];
      sum[j][0] = a * w + sum[j][0];
      sum[j][1] = b * w + sum[j][1];
      sum[j][2] = c * w + sum[j][2];
      sum[j][3] = d * w + sum[j][3];
    }
  }
  for (int j = 0; j < count; j++)
    for (int c = 0; c < 4; c++) *(lanes *)(out[j] + c * LANES) = sum[j][c] * inverse[j];
}

/* [LANES, dim] -> [dim, LANES] */
static inline void transpose(const float *key, int dim, float *out) {
  for (int d = 0; d < dim; d += 16)
    for (int i = 0; i < 16; i++)
      for (int l = 0; l < LANES; l++) out[(d + i) * LANES + l] = key[l * dim + d + i];
}

/* The same for keys in int8 with scales [LANES, dim / KEY_GROUP]. */
static inline void transpose_int8(const int8_t *key, const float *scale, int dim, float *out) {
  for (int d = 0; d < dim; d += 16)
    for (int i = 0; i < 16; i++)
      for (int l = 0; l < LANES; l++) {
        float s = scale[(l * dim + d) / KEY_GROUP];
        out[(d + i) * LANES + l] = (float)key[l * dim + d + i] * s;
      }
}

static inline lanes widened(const int8_t *x, float scale) {
  return __builtin_convertvector(*(const small_lanes *)x, lanes) * scale;
}

/* mix() of values in int8: the sums of the float32 numbers that they stand for. */
static inline void mix_int8(const int8_t *value, const float *scale, int dim, int64_t n,
                            const float *const *weight, int count, const float *inverse, float *const *out) {
  lanes sum[MIX_QUERIES][4];
  for (int j = 0; j < MIX_QUERIES; j++)
    for (int c = 0; c < 4; c++) sum[j][c] = all(0.0f);
  for (int64_t p = 0; p < n; p++) {
    const int8_t *row = value + p * dim;
    lanes a = widened(row, scale[p]), b = widened(row + LANES, scale[p]);
    lanes c = widened(row + 2 * LANES, scale[p]), d = widened(row + 3 * LANES, scale[p]);
#pragma GCC unroll 4
    for (int j = 0; j < MIX_QUERIES; j++) {
      float w = weight[j][p];
      sum[j][0] = a * w + sum[j][0];
      sum[j][1] = b * w + sum[j][1];
      sum[j][2] = c * w + sum[j][2];
      sum[j][3] = d * w + sum[j][3];
    }
  }
  for (int j = 0; j < count; j++)
    for (int c = 0; c < 4; c++) *(lanes *)(out[j] + c * LANES) = sum[j][c] * inverse[j];
}

/* Whether loops are divided among threads. */
int draftline_parallel(void) {
#ifdef _OPENMP
  return 1;
#else
  return 0;
#endif
}

/* Floats of work space that one thread needs for so many positions. */
int64_t draftline_attention_work(int heads, int kv_heads, int dim, int block, int64_t positions) {
  int64_t padded = (positions + LANES - 1) / LANES * LANES, queries = (int64_t)block * (heads / kv_heads);
  return padded * queries + queries + (int64_t)dim * LANES;
}

/* Grouped queries [rows, heads, dim] at positions first .. over keys and values [kv_heads, capacity, dim];
 * out [rows, heads * dim]. dim must be a multiple of 4 * LANES, capacity of LANES. Units of `block` rows
 * and one key head are divided among at most `threads` threads; work holds draftline_attention_work floats
 * for each. With key_scales [kv_heads, capacity, dim / KEY_GROUP] and value_scales [kv_heads, capacity] (else
 * NULL) keys and values are int8, and the result has the bits of attention over the float32 numbers that they
 * stand for. */
void draftline_attention(const float *query, const float *keys, const float *values, int rows, int heads,
                         int kv_heads, int dim, int64_t capacity, int64_t first, float factor, int block,
                         int threads, float *work, int64_t work_size, float *out, const float *key_scales,
                         const float *value_scales) {
#ifndef _OPENMP
  (void)threads;
#endif
  int group = heads / kv_heads, units = (rows + block - 1) / block * kv_heads;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (rows * (first + rows) > 256)
  for (int unit = 0; unit < units; unit++) {
#ifdef _OPENMP
    float *score = work + omp_get_thread_num() * work_size;
#else
    float *score = work;
#endif
    int h = unit % kv_heads, start = (units / kv_heads - 1 - unit / kv_heads) * block; /* longest first */
    int stop = start + block < rows ? start + block : rows, queries = (stop - start) * group;
    int64_t length = first + stop, padded = (length + LANES - 1) / LANES * LANES;
    float *inverse = score + padded * queries, *transposed = inverse + queries;
    int64_t base = h * capacity; /* the head's first row */
    const float *in[DOT_QUERIES], *weight[MIX_QUERIES];
    float *to[DOT_QUERIES];
    for (int64_t p = 0; p < padded; p += LANES) {
      if (key_scales)
        transpose_int8((const int8_t *)keys + (base + p) * dim, key_scales + (base + p) * (dim / KEY_GROUP), dim,
                       transposed);
      else
        transpose(keys + (base + p) * dim, dim, transposed);
      for (int from = 0; from < queries; from += DOT_QUERIES) {
        int count = queries - from < DOT_QUERIES ? queries - from : DOT_QUERIES;
        for (int j = 0; j < DOT_QUERIES; j++) {
          int q = from + (j < count ? j : 0);
          in[j] = query + ((int64_t)(start + q / group) * heads + h * group + q % group) * dim;
          to[j] = score + q * padded + p;
        }
        dot(transposed, dim, in, count, factor, to);
      }
    }
    for (int q = 0; q < queries; q++)
      inverse[q] = softmax(score + q * padded, first + start + q / group + 1, padded);
    for (int from = 0; from < queries; from += MIX_QUERIES) {
      int count = queries - from < MIX_QUERIES ? queries - from : MIX_QUERIES;
      for (int column = 0; column < dim; column += 4 * LANES) {
        for (int j = 0; j < MIX_QUERIES; j++) {
          int q = from + (j < count ? j : 0);
          weight[j] = score + q * padded;
          to[j] = out + ((int64_t)(start + q / group) * heads + h * group + q % group) * dim + column;
        }
        if (value_scales)
          mix_int8((const int8_t *)values + base * dim + column, value_scales + base, dim, length, weight,
                   count, inverse + from, to);
        else
          mix(values + base * dim + column, dim, length, weight, count, inverse + from, to);
      }
    }
  }
}
