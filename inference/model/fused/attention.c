/* Causal attention over a KV slot, in float32; a row's result depends on that row alone.
 *
 * Everything here works on whole vectors, without scalar rests, so that products and sums may be contracted
 * (-ffp-contract=fast): all rows run the same instructions. (Numbers are taken to be finite: a later row of
 * the block counts with weight 0.)
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef _OPENMP
int omp_get_thread_num(void); /* compilers without a thread library of their own lack its header */
#endif

#define MAX_TREE 64 /* rows of a tree */
#define LANES 16
#define KEYS 32       /* one pass of queries over so many */
#define DOT_QUERIES 8 /* queries that share one pass over keys in registers */
#define MIX_QUERIES 4
#define KEY_GROUP LANES /* numbers of an int8 key that share a scale; as in rows.c */

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

/* Products of DOT_QUERIES queries with KEYS keys, given transposed [dim, KEYS]. */
static inline void dot(const float *transposed, int dim, const float *const *query, int count, float factor,
                       float *const *out) {
  lanes sum[DOT_QUERIES][2];
  for (int j = 0; j < DOT_QUERIES; j++) sum[j][0] = sum[j][1] = all(0.0f);
  for (int d = 0; d < dim; d++) {
    lanes low = *(const lanes *)(transposed + d * KEYS), high = *(const lanes *)(transposed + d * KEYS + LANES);
#pragma GCC unroll 8
    for (int j = 0; j < DOT_QUERIES; j++) {
      float x = query[j][d];
      sum[j][0] = low * x + sum[j][0];
      sum[j][1] = high * x + sum[j][1];
    }
  }
  for (int j = 0; j < count; j++) {
    *(lanes *)out[j] = sum[j][0] * factor;
    *(lanes *)(out[j] + LANES) = sum[j][1] * factor;
  }
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

static inline lanes widened(const int8_t *x, float scale) {
  return __builtin_convertvector(*(const small_lanes *)x, lanes) * scale;
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

/* Softmax of row `row` of a tree, whose rows' scores stand behind those of the `first` positions before it.
 *
 * The path to the row is moved together, so that all sums run in the order of a chain, and moved back; rows
 * that are not on it count with weight 0, which changes no bit of a sum. */
static inline float tree_softmax(float *score, int64_t first, int row, int depth, const int32_t *path,
                                 int64_t length) {
  float *tail = score + first, weight[MAX_TREE];
  for (int d = 0; d <= depth; d++) tail[d] = tail[path[d]]; /* path[d] >= d: nothing is lost */
  float inverse = softmax(score, first + depth + 1, length);
  for (int d = 0; d <= depth; d++) weight[d] = tail[d];
  for (int r = 0; r <= row; r++) tail[r] = 0.0f;
  for (int d = 0; d <= depth; d++) tail[path[d]] = weight[d];
  return inverse;
}

/* mix() of values in int8: the sums of the float32 numbers that they stand for. (One function for both, with a
 * choice that is known when compiling, made attention a sixth slower with gcc 12.) */
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

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (whole_lanes){__VA_ARGS__})
#endif
#define LOW_8 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define HIGH_8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define LOW_4 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define HIGH_4 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define LOW_2 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define HIGH_2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define LOW_1 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define HIGH_1 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31

/* Exchange, in pairs of rows `step` apart, the parts that lie across the diagonal. Four such rounds transpose
 * a square of 16. */
#define EXCHANGE(step, low, high)                    \
  _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) \
    if (!(i & step)) {                               \
      lanes a = row[i], b = row[i + step];           \
      row[i] = SHUFFLE(a, b, low);                   \
      row[i + step] = SHUFFLE(a, b, high);           \
    }

/* [KEYS, dim] -> [dim, KEYS] in float32; with scales [KEYS, dim / KEY_GROUP] (else NULL) the keys are int8. */
static inline __attribute__((always_inline)) void transpose(const float *key, const float *scale, int dim,
                                                            float *out) {
  for (int half = 0; half < KEYS; half += LANES)
    for (int d = 0; d < dim; d += LANES) {
      lanes row[LANES];
#pragma GCC unroll 16
      for (int i = 0; i < LANES; i++) {
        int64_t at = (half + i) * dim + d;
        row[i] = scale ? widened((const int8_t *)key + at, scale[at / KEY_GROUP]) : *(const lanes *)(key + at);
      }
      EXCHANGE(8, LOW_8, HIGH_8)
      EXCHANGE(4, LOW_4, HIGH_4)
      EXCHANGE(2, LOW_2, HIGH_2)
      EXCHANGE(1, LOW_1, HIGH_1)
#pragma GCC unroll 16
      for (int i = 0; i < LANES; i++) *(lanes *)(out + (d + i) * KEYS + half) = row[i];
    }
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
  int64_t padded = (positions + KEYS - 1) / KEYS * KEYS, queries = (int64_t)block * (heads / kv_heads);
  return padded * queries + queries + (int64_t)dim * KEYS;
}

/* Grouped queries [rows, heads, dim] at positions first .. over keys and values [kv_heads, capacity, dim];
 * out [rows, heads * dim]. dim must be a multiple of 4 * LANES, capacity of KEYS. Units of `block` rows
 * and one key head are divided among the threads of the region that calls; work holds
 * draftline_attention_work floats for each. depth and path: see struct block in forward.c; at most MAX_TREE
 * rows. With key_scales [kv_heads, capacity, dim / KEY_GROUP] and value_scales [kv_heads, capacity] (else NULL)
 * keys and values are int8, and the result has the bits of attention over the float32 numbers that they stand
 * for. */
void draftline_attention(const float *query, const float *keys, const float *values, int rows, int heads,
                         int kv_heads, int dim, int64_t capacity, int64_t first, float factor, int block,
                         float *work, int64_t work_size, float *out, const int32_t *depth,
                         const int32_t *path, const float *key_scales, const float *value_scales) {
  int group = heads / kv_heads, units = (rows + block - 1) / block * kv_heads;
#pragma omp for schedule(dynamic)
  for (int unit = 0; unit < units; unit++) {
#ifdef _OPENMP
    float *score = work + omp_get_thread_num() * work_size;
#else
    float *score = work;
#endif
    int h = unit % kv_heads, start = (units / kv_heads - 1 - unit / kv_heads) * block; /* longest first */
    int stop = start + block < rows ? start + block : rows, queries = (stop - start) * group;
    int64_t length = first + stop, padded = (length + KEYS - 1) / KEYS * KEYS;
    float *inverse = score + padded * queries, *transposed = inverse + queries;
    int64_t base = h * capacity; /* the head's first row */
    const float *in[DOT_QUERIES], *weight[MIX_QUERIES];
    float *to[DOT_QUERIES];
    for (int64_t p = 0; p < padded; p += KEYS) {
      if (key_scales)
        transpose((const float *)((const int8_t *)keys + (base + p) * dim),
                  key_scales + (base + p) * (dim / KEY_GROUP), dim, transposed);
      else
        transpose(keys + (base + p) * dim, NULL, dim, transposed);
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
    for (int q = 0; q < queries; q++) {
      int row = start + q / group;
      inverse[q] = depth ? tree_softmax(score + q * padded, first, row, depth[row], path + row * rows, padded)
                         : softmax(score + q * padded, first + row + 1, padded);
    }
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
