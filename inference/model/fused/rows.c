/* The steps between the linear layers of a Llama-family decoder, fused, in float32.
 *
 * A row's result depends on that row alone: each row runs the same arithmetic in the same order, whatever
 * else is in the block and however many threads there are. So contraction is off (-ffp-contract=off) and
 * fmaf() is written where it is wanted: vector bodies and scalar rests of a loop then round alike.
 *
 * Rows are contiguous; "scale" holds one number for each row. They are divided among the threads of the region
 * that calls; without one, they run one after the other.
 */
#if defined(__x86_64__) && !defined(__FMA__)
#error "no fused multiply-add: every fmaf would be a call"
#endif

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 16        /* floats of the widest vector; partial sums are kept in so many lanes */
#define ZERO_POINT 128
#define MAX_INNER 65536 /* longest row of the MLP; checked by the caller */
#define MAX_DIM 256
#define KEY_GROUP 16 /* numbers of an int8 key that share a scale; as in inference/cache/int8_rows.py */

static inline float peak(const float *restrict x, int n) {
  int32_t most = 0x0da24260; /* 1e-30: the bits of non-negative floats are ordered like integers */
  for (int i = 0; i < n; i++) {
    int32_t bits;
    memcpy(&bits, x + i, 4);
    bits &= 0x7fffffff;
    most = bits > most ? bits : most;
  }
  float value;
  memcpy(&value, &most, 4);
  return value;
}

/* uint8 around ZERO_POINT, symmetric, one scale. */
static inline void quantize_row(const float *restrict x, int n, uint8_t *restrict q, float *restrict scale) {
  float most = peak(x, n), inverse = 1.0f / most * 127.0f; /* as torch computes 127 / most */
  for (int i = 0; i < n; i++) q[i] = (uint8_t)((int32_t)nearbyintf(x[i] * inverse) + ZERO_POINT);
  *scale = most * (1.0f / 127.0f);
}

/* int8, symmetric, one scale for each group; the levels of inference/cache/int8_rows.py. */
static inline void quantize_signed(const float *restrict x, int n, int group, int8_t *restrict q,
                                   float *restrict scale) {
  for (int from = 0; from < n; from += group) {
    float most = peak(x + from, group), inverse = 1.0f / most * 127.0f;
    for (int i = from; i < from + group; i++) q[i] = (int8_t)(int32_t)nearbyintf(x[i] * inverse);
    scale[from / group] = most * (1.0f / 127.0f);
  }
}

static inline float mean_square(const float *restrict x, int n) {
  float lane[LANES] = {0};
  int i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; j++) lane[j] += x[i + j] * x[i + j];
  float sum = 0.0f;
  for (int j = 0; j < LANES; j++) sum += lane[j];
  for (; i < n; i++) sum += x[i] * x[i];
  return sum / (float)n;
}

/* exp by Cody and Waite's reduction and the polynomial of Cephes' expf; error below 2 ulp. */
static inline float exponential(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  float whole = nearbyintf(x * 1.44269504088896341f);
  float r = fmaf(whole, -0.693359375f, x);
  r = fmaf(whole, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = fmaf(p, r, 1.3981999507e-3f);
  p = fmaf(p, r, 8.3334519073e-3f);
  p = fmaf(p, r, 4.1665795894e-2f);
  p = fmaf(p, r, 1.6666665459e-1f);
  p = fmaf(p, r, 5.0000001201e-1f);
  p = fmaf(p, r * r, r + 1.0f);
  int32_t bits = ((int32_t)whole + 127) << 23;
  float power;
  memcpy(&power, &bits, 4);
  return p * power;
}

/* x [rows, n] -> q, scale */
void draftline_quantize(const float *x, int rows, int n, uint8_t *q, float *scale) {
#pragma omp for schedule(static)
  for (int r = 0; r < rows; r++)
    quantize_row(x + (int64_t)r * n, n, q + (int64_t)r * n, scale + r);
}

/* x += update * update_scale (no update if NULL) in place; then RMSNorm of x, quantised.
 * q may be NULL: only the sum is wanted. */
void draftline_add_norm(float *x, const float *update, const float *update_scale, int rows, int n,
                        const float *weight, float eps, uint8_t *q, float *scale) {
#pragma omp for schedule(static)
  for (int r = 0; r < rows; r++) {
    float normed[MAX_INNER];
    float *restrict row = x + (int64_t)r * n;
    if (update) {
      const float *restrict more = update + (int64_t)r * n;
      float factor = update_scale[r];
      for (int i = 0; i < n; i++) row[i] += more[i] * factor;
    }
    if (!q) continue;
    float inverse = 1.0f / sqrtf(mean_square(row, n) + eps);
    for (int i = 0; i < n; i++) normed[i] = row[i] * inverse * weight[i];
    quantize_row(normed, n, q + (int64_t)r * n, scale + r);
  }
}

/* y [rows, 2 * inner] with its row scales -> silu(gate) * up, quantised. scale may be y_scale itself. */
void draftline_silu(const float *y, const float *y_scale, int rows, int inner, uint8_t *q, float *scale) {
#pragma omp for schedule(static)
  for (int r = 0; r < rows; r++) {
    float active[MAX_INNER];
    const float *restrict gate = y + (int64_t)r * 2 * inner, *restrict up = gate + inner;
    float factor = y_scale[r];
    for (int i = 0; i < inner; i++) {
      float g = gate[i] * factor;
      active[i] = g / (1.0f + exponential(-g)) * (up[i] * factor);
    }
    quantize_row(active, inner, q + (int64_t)r * inner, scale + r);
  }
}

/* y [rows, (heads + 2 * kv_heads) * dim] with its row scales -> rotated queries [rows, heads, dim]; rotated
 * keys and values into [kv_heads, capacity, dim] from row first on. cosine, sine: [.., dim] from position first
 * on, the sine with the sign of the rotate-half form. Row r stands at position first + depth[r], first + r if
 * depth is NULL. With key_scales [kv_heads, capacity, dim / KEY_GROUP] and value_scales
 * [kv_heads, capacity] (else NULL) keys and values are int8. */
void draftline_rotate(const float *y, const float *y_scale, const float *bias, int rows, int heads,
                      int kv_heads, int dim, const float *cosine, const float *sine, const int32_t *depth,
                      float *query, float *keys, float *values, int64_t capacity, int64_t first,
                      float *key_scales, float *value_scales) {
  int half = dim / 2, width = (heads + 2 * kv_heads) * dim;
#pragma omp for schedule(static)
  for (int r = 0; r < rows; r++) {
    int64_t position = depth ? depth[r] : r;
    const float *restrict c = cosine + position * dim, *restrict s = sine + position * dim;
    for (int h = 0; h < heads + 2 * kv_heads; h++) {
      const float *restrict in = y + (int64_t)r * width + h * dim;
      float plain[MAX_DIM];
      for (int i = 0; i < dim; i++) plain[i] = in[i] * y_scale[r];
      if (bias)
        for (int i = 0; i < dim; i++) plain[i] += bias[h * dim + i];
      if (h >= heads + kv_heads) {
        int64_t at = (int64_t)(h - heads - kv_heads) * capacity + first + r;
        if (value_scales)
          quantize_signed(plain, dim, dim, (int8_t *)values + at * dim, value_scales + at);
        else
          memcpy(values + at * dim, plain, sizeof(float) * dim);
        continue;
      }
      float rotated[MAX_DIM];
      int64_t at = (int64_t)(h - heads) * capacity + first + r; /* of a key */
      float *restrict out = h < heads    ? query + ((int64_t)r * heads + h) * dim
                            : key_scales ? rotated
                                         : keys + at * dim;
      for (int i = 0; i < half; i++) {
        out[i] = plain[i] * c[i] + plain[i + half] * s[i];
        out[i + half] = plain[i + half] * c[i + half] + plain[i] * s[i + half];
      }
      if (h >= heads && key_scales)
        quantize_signed(out, dim, KEY_GROUP, (int8_t *)keys + at * dim, key_scales + at * (dim / KEY_GROUP));
    }
  }
}
