// Gradients, probabilities and losses of samples in boosting, and sums of these.
//
// Arrays by class are planes, [k][sample]. The operations are those of
// badacost/boosting/costboost_kernels.py, in the same order.
#include "portable.cuh"

// Gradient of the log-loss of a sample along direction c; the hessian for c == n_directions.
__device__ inline double sketched(const float *probabilities, int label, double weight,
                                  const double *directions, i64 n, i64 i, int n_classes,
                                  int n_directions, int c) {
  if (c == n_directions) {
    double hessian = 0.0;
    for (int k = 0; k < n_classes; k++) {
      const double probability = (double)probabilities[(i64)k * n + i];
      hessian += probability * (1.0 - probability);
    }
    return weight * hessian;
  }
  double sum = -weight * directions[label * n_directions + c];
  for (int k = 0; k < n_classes; k++) {
    const double probability = (double)probabilities[(i64)k * n + i];
    sum += weight * probability * directions[k * n_directions + c];
  }
  return sum;
}

// Largest absolute values of the sketches, as bits, whose order is that of the numbers.
extern "C" __global__ void sketch_sizes(const float *probabilities, const unsigned short *y,
                                        const double *weight, const double *directions, i64 n,
                                        i64 n_classes, i64 n_directions, u64 *largest) {
  __shared__ u64 found;
  const int c = blockIdx.y;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  u64 mine = 0;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    const double value = sketched(probabilities, y[i], weight[i], directions, n, i, (int)n_classes,
                                  (int)n_directions, c);
    mine = max(mine, (u64)__double_as_longlong(value) & 0x7fffffffffffffffULL);
  }
  atomicMax(&found, mine);
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(largest + c, found);
}

// Sketches (n_directions + 1, n) in quanta, rounded to single precision before.
extern "C" __global__ void sketch_quanta(const float *probabilities, const unsigned short *y,
                                         const double *weight, const double *directions, i64 n,
                                         i64 n_classes, i64 n_directions, const double *quantum,
                                         int *quanta) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  const int c = blockIdx.y;
  if (i >= n) return;
  const double value = sketched(probabilities, y[i], weight[i], directions, n, i, (int)n_classes,
                                (int)n_directions, c);
  const float rounded = (float)(rint(value / quantum[c]) * quantum[c]);
  quanta[(i64)c * n + i] = (int)((double)rounded / max(quantum[c], 0x1p-149));
}

// Adds step * table[rows] to cost scores; sets probabilities, and the log-loss of samples.
extern "C" __global__ void advance(double *scores, double step, const double *table,
                                   const int *rows, const unsigned short *y, float *probabilities,
                                   double *losses, i64 n, i64 n_classes, bool adds) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double smallest = 0.0;
  for (int k = 0; k < n_classes; k++) {
    double score = scores[(i64)k * n + i];
    if (adds) {
      score += step * table[(i64)rows[i] * n_classes + k];
      scores[(i64)k * n + i] = score;
    }
    smallest = k == 0 || score < smallest ? score : smallest;
  }
  double total = 0.0;
  for (int k = 0; k < n_classes; k++) total += portable_exp(smallest - scores[(i64)k * n + i]);
  for (int k = 0; k < n_classes; k++)
    probabilities[(i64)k * n + i] = (float)(portable_exp(smallest - scores[(i64)k * n + i]) / total);
  losses[i] = portable_log(total) + (scores[(i64)y[i] * n + i] - smallest);
}

// Gradients and hessians by leaf and class, (n_leaves, 2, K), in quanta; adding and subtracting
// `big` rounds the terms. With `in_shared` a block sums in shared memory first.
extern "C" __global__ void leaf_sums(const float *probabilities, const unsigned short *y,
                                     const double *weight, const u32 *used, i64 n_used,
                                     const int *rows, i64 n, i64 n_classes, double big,
                                     double per_quantum, i64 n_leaves, bool in_shared,
                                     u64 *sums) {
  DYNAMIC_SHARED(u32, low);
  const int n_cells = 2 * (int)(n_leaves * n_classes);
  u32 *high = low + n_cells;
  if (in_shared)
    for (int cell = threadIdx.x; cell < 2 * n_cells; cell += blockDim.x) low[cell] = 0;
  __syncthreads();
  const i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 q = (i64)blockIdx.x * blockDim.x + threadIdx.x; q < n_used; q += step) {
    const i64 i = used[q];
    const i64 first = (i64)rows[i] * 2 * n_classes;
    const double w = weight[i];
    for (int k = 0; k < n_classes; k++) {
      const double probability = (double)probabilities[(i64)k * n + i];
      double gradient = (w * probability + big) - big;
      if (k == y[i]) gradient -= (w + big) - big;
      const double hessian = (w * (probability * (1.0 - probability)) + big) - big;
      const i64 terms[2] = {(i64)(gradient * per_quantum), (i64)(hessian * per_quantum)};
      for (int part = 0; part < 2; part++) {
        const i64 cell = first + part * n_classes + k;
        if (in_shared)
          add_halves(low + cell, high + cell, (u64)terms[part]);
        else
          atomicAdd(sums + cell, (u64)terms[part]);
      }
    }
  }
  __syncthreads();
  if (!in_shared) return;
  for (int cell = threadIdx.x; cell < n_cells; cell += blockDim.x) {
    const u64 sum = ((u64)high[cell] << 32) | low[cell];
    if (sum) atomicAdd(sums + cell, sum);
  }
}

// Largest terms by cell, as bits; terms are not negative.
extern "C" __global__ void cell_sizes(const int *cells, const double *terms, i64 n, i64 n_cells,
                                      bool in_shared, u64 *largest) {
  DYNAMIC_SHARED(u64, found);
  if (in_shared)
    for (int cell = threadIdx.x; cell < n_cells; cell += blockDim.x) found[cell] = 0;
  __syncthreads();
  const i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
    atomicMax((in_shared ? found : largest) + cells[i], (u64)__double_as_longlong(terms[i]));
  __syncthreads();
  if (!in_shared) return;
  for (int cell = threadIdx.x; cell < n_cells; cell += blockDim.x)
    if (found[cell]) atomicMax(largest + cell, found[cell]);
}

// Sums of terms by cell, high and low (2, n_cells), in quanta of 2**-53 times the units of each
// cell: low halves may be negative, and have one more bit then.
extern "C" __global__ void cell_sums(const int *cells, const double *terms, i64 n, i64 n_cells,
                                     const double *coarse, const double *fine, bool in_shared,
                                     u64 *sums) {
  DYNAMIC_SHARED(u32, low);
  u32 *high = low + 2 * n_cells;
  if (in_shared)
    for (int cell = threadIdx.x; cell < 4 * n_cells; cell += blockDim.x) low[cell] = 0;
  __syncthreads();
  const double quanta = 0x1p53;
  const i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    const i64 cell = cells[i];
    const double term = terms[i], unit = coarse[cell], finer = fine[cell];
    const double above = (term + unit) - unit;
    const double below = ((term - above) + finer) - finer;
    const i64 halves[2] = {(i64)(above / unit * quanta), (i64)(below / finer * quanta)};
    for (int half = 0; half < 2; half++) {
      const i64 place = half * n_cells + cell;
      if (in_shared)
        add_halves(low + place, high + place, (u64)halves[half]);
      else
        atomicAdd(sums + place, (u64)halves[half]);
    }
  }
  __syncthreads();
  if (!in_shared) return;
  for (int place = threadIdx.x; place < 2 * n_cells; place += blockDim.x)
    atomicAdd(sums + place, ((u64)high[place] << 32) | low[place]);
}
