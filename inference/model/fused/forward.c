/* Linear layers, and all layers of a decoder, in one call: no Python and no new threads between the steps.
 *
 * Functions of the other files divide their loops among the threads of the region that calls them
 * (#pragma omp for) and end with a barrier.
 */
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#ifdef _OPENMP
int omp_get_thread_num(void); /* compilers without a thread library of their own lack its header */
#endif

/* The functions of the other files. */
void draftline_quantize(const float *x, int rows, int n, uint8_t *q, float *scale);
void draftline_add_norm(float *x, const float *update, const float *update_scale, int rows, int n,
                        const float *weight, float eps, uint8_t *q, float *scale);
void draftline_silu(const float *y, const float *y_scale, int rows, int inner, uint8_t *q, float *scale);
void draftline_rotate(const float *y, const float *y_scale, const float *bias, int rows, int heads,
                      int kv_heads, int dim, const float *cosine, const float *sine, const int32_t *depth,
                      float *query, float *keys, float *values, int64_t capacity, int64_t first,
                      float *key_scales, float *value_scales);
void draftline_attention(const float *query, const float *keys, const float *values, int rows, int heads,
                         int kv_heads, int dim, int64_t capacity, int64_t first, float factor, int block,
                         float *work, int64_t work_size, float *out, const int32_t *depth, const int32_t *path,
                         const float *key_scales, const float *value_scales);
void draftline_product(const uint8_t *q, int rows, int inputs, int outputs, const int8_t *weight,
                       const int32_t *offset, const float *scale, float *y);

/* These four are mirrored by library.py. */
struct linear {
  const int8_t *weight;
  const int32_t *offset;
  const float *scale, *bias;
  int32_t inputs, outputs;
};

struct layer {
  const float *attention_norm, *mlp_norm;
  struct linear qkv, out, gate_up, down;
};

struct model {
  const struct layer *layers;
  int32_t count, hidden, inner, heads, kv_heads, dim;
  float eps, factor;
};

/* Rows to run and where things lie. Tree: row r stands at depth[r] behind the last token of the slot, and
 * path[r * rows + d] is its ancestor (or itself) at depth d; both NULL for a chain. */
struct block {
  float *x; /* [rows, hidden], changed in place */
  int64_t rows, first;
  const float *cosine, *sine; /* of position `first` */
  const int32_t *depth, *path;
  float *const *keys, *const *values;             /* of each layer */
  float *const *key_scales, *const *value_scales; /* the same; NULL where keys and values are float32 */
  int64_t capacity;
  float *scale, *y, *query, *mixed, *work;
  uint8_t *q;
  int64_t unit, work_size; /* of attention */
  double *laps;            /* seconds of each step of run_layer, added up over layers; NULL for not wanted */
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The first thread's clock; all threads have passed the barrier of the step before. */
static void lap(const struct block *b, int step, double *last) {
  if (!b->laps) return;
#ifdef _OPENMP
  if (omp_get_thread_num()) return;
#endif
  double time = now();
  b->laps[step] += time - *last;
  *last = time;
}

static void product(const struct linear *linear, const struct block *b) {
  draftline_product(b->q, (int)b->rows, linear->inputs, linear->outputs, linear->weight, linear->offset,
                    linear->scale, b->y);
}

static void run_layer(const struct model *m, const struct layer *layer, int index, const struct block *b) {
  int rows = (int)b->rows;
  double last = b->laps ? now() : 0.0;
  float *keys = b->keys[index], *values = b->values[index];
  float *key_scales = b->key_scales ? b->key_scales[index] : NULL;
  float *value_scales = b->value_scales ? b->value_scales[index] : NULL;
  draftline_add_norm(b->x, index ? b->y : NULL, b->scale, rows, m->hidden, layer->attention_norm, m->eps, b->q,
                     b->scale);
  lap(b, 0, &last);
  product(&layer->qkv, b);
  lap(b, 1, &last);
  draftline_rotate(b->y, b->scale, layer->qkv.bias, rows, m->heads, m->kv_heads, m->dim, b->cosine, b->sine,
                   b->depth, b->query, keys, values, b->capacity, b->first, key_scales, value_scales);
  lap(b, 2, &last);
  draftline_attention(b->query, keys, values, rows, m->heads, m->kv_heads, m->dim, b->capacity, b->first,
                      m->factor, (int)b->unit, b->work, b->work_size, b->mixed, b->depth, b->path,
                      key_scales, value_scales);
  lap(b, 3, &last);
  draftline_quantize(b->mixed, rows, m->heads * m->dim, b->q, b->scale);
  lap(b, 4, &last);
  product(&layer->out, b);
  lap(b, 5, &last);
  draftline_add_norm(b->x, b->y, b->scale, rows, m->hidden, layer->mlp_norm, m->eps, b->q, b->scale);
  lap(b, 6, &last);
  product(&layer->gate_up, b);
  lap(b, 7, &last);
  draftline_silu(b->y, b->scale, rows, m->inner, b->q, b->scale);
  lap(b, 8, &last);
  product(&layer->down, b);
  lap(b, 9, &last);
}

/* All layers. */
void draftline_layers(const struct model *m, const struct block *b, int threads) {
#ifndef _OPENMP
  (void)threads;
#endif
#pragma omp parallel num_threads(threads)
  {
    for (int index = 0; index < m->count; index++) run_layer(m, m->layers + index, index, b);
    draftline_add_norm(b->x, b->y, b->scale, (int)b->rows, m->hidden, NULL, m->eps, NULL, NULL);
  }
}

/* x [rows, inputs] -> y [rows, outputs], quantised in between; q [rows, inputs] and scale [rows] are work
 * space. */
void draftline_linear(const struct linear *linear, const float *x, int rows, uint8_t *q, float *scale, float *y,
                      int threads) {
#ifndef _OPENMP
  (void)threads;
#endif
  int outputs = linear->outputs;
#pragma omp parallel num_threads(threads)
  {
    draftline_quantize(x, rows, linear->inputs, q, scale);
    draftline_product(q, rows, linear->inputs, outputs, linear->weight, linear->offset, linear->scale, y);
#pragma omp for schedule(static)
    for (int64_t part = 0; part < (int64_t)rows * 16; part++) {
      int r = (int)(part / 16), start = (int)((int64_t)outputs * (part % 16) / 16);
      int stop = (int)((int64_t)outputs * (part % 16 + 1) / 16);
      float *restrict row = y + (int64_t)r * outputs, factor = scale[r];
      if (linear->bias)
        for (int i = start; i < stop; i++) row[i] = row[i] * factor + linear->bias[i];
      else
        for (int i = start; i < stop; i++) row[i] *= factor;
    }
  }
}
