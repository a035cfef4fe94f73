// Tree growth: histograms of nodes, and the partition of their samples.
//
// Bins of four features are the bytes of a word, words[f / 4][sample]. A node is a range of `order`.
// A block works on a chunk, a row (job, start, end) of a table: samples start .. end of `order`
// belong to the node of the job. All sums are over whole numbers of quanta.
#include "portable.cuh"

enum Kind { ROWS, LABELS, COUNTS };

struct Chunk {
  i64 job, start, end;
};

__device__ inline u64 halves(u32 low, u32 high) { return ((u64)high << 32) | low; }

__device__ inline u32 code_of(const u32 *words, i64 n_samples, i64 feature, u32 sample) {
  return words[(feature >> 2) * n_samples + sample] >> (8 * (feature & 3)) & 255u;
}

// Histograms of 4 * N_WORDS features. `features` has a row for each job; the cells of a job are
// (n_features, n_codes, n_columns). A block sums `n_apart` of the columns.
template <Kind KIND, int N_WORDS>
__device__ void sum_by_bin(const u32 *words, i64 n_samples, const u32 *order, const Chunk *chunks,
                           const int *features, i64 n_features, i64 n_codes, i64 n_columns,
                           i64 n_apart, const int *quanta, const unsigned short *labels,
                           const float *weights, double per_quantum, u64 *cells) {
  DYNAMIC_SHARED(u32, low);
  const int n_here = 4 * N_WORDS;
  const int first = blockIdx.y * n_here, column = blockIdx.z * (int)n_apart;
  const int n_used = min((int)n_features - first, n_here);
  const int n_sums = min((int)(n_columns - column), (int)n_apart);
  const int n_cells = n_used * n_sums * (int)n_codes;
  u32 *high = low + n_cells;
  for (int cell = threadIdx.x; cell < 2 * n_cells; cell += blockDim.x) low[cell] = 0;
  const Chunk chunk = chunks[blockIdx.x];
  const int *chosen = features + chunk.job * n_features + first;
  bool whole = true;  // whether the features are those of whole words, in order
  for (int p = 0; p < n_used; p++) whole &= chosen[p] == (chosen[0] & ~3) + p;
  const int lane = threadIdx.x;
  __syncthreads();
  for (i64 place = chunk.start + threadIdx.x; place < chunk.end; place += blockDim.x) {
    const u32 sample = order[place];
    u32 codes[N_WORDS];
    for (int w = 0; w < N_WORDS; w++) {
      codes[w] = 0;
      if (4 * w >= n_used) continue;
      if (whole) {
        codes[w] = words[(i64)((chosen[0] >> 2) + w) * n_samples + sample];
      } else {
        for (int b = 0; b < 4 && 4 * w + b < n_used; b++)
          codes[w] |= code_of(words, n_samples, chosen[4 * w + b], sample) << (8 * b);
      }
    }
    i64 value = 1;
    int c = 0, last = n_sums;
    if (KIND == LABELS) {
      c = (int)labels[sample] - column;
      if (c < 0 || c >= n_sums) continue;
      last = c + 1;
      value = (i64)((double)weights[sample] * per_quantum);
    }
    for (; c < last; c++) {
      if (KIND == ROWS) value = quanta[(i64)(column + c) * n_samples + sample];
#pragma unroll
      for (int w = 0; w < N_WORDS; w++) {
        // Four additions are issued before the first carry is checked. Neighbouring threads begin
        // with different features, so that fewer of them add to the same bin at a time.
        int cell[4];
        u32 old[4];
#pragma unroll
        for (int turn = 0; turn < 4; turn++) {
          const int b = (turn + lane) & 3, p = 4 * w + b;
          cell[turn] = -1;
          if (p >= n_used) continue;
          cell[turn] = (p * n_sums + c) * (int)n_codes + (int)(codes[w] >> (8 * b) & 255u);
          old[turn] = atomicAdd(low + cell[turn], (u32)value);
        }
#pragma unroll
        for (int turn = 0; turn < 4; turn++) {
          if (cell[turn] < 0) continue;
          const u32 above = above_of(old[turn], (u64)value);
          if (above) atomicAdd(high + cell[turn], above);
        }
      }
    }
  }
  __syncthreads();
  u64 *mine = cells + (chunk.job * n_features + first) * n_codes * n_columns;
  for (int cell = threadIdx.x; cell < n_cells; cell += blockDim.x) {
    const u64 sum = halves(low[cell], high[cell]);
    const int code = cell % (int)n_codes, rest = cell / (int)n_codes;
    const int c = rest % n_sums, p = rest / n_sums;
    if (sum) atomicAdd(mine + ((i64)p * n_codes + code) * n_columns + column + c, sum);
  }
}

#define HISTOGRAM_KERNEL(name, kind, n_words)                                                     \
  extern "C" __global__ void __launch_bounds__(512) name(                                         \
      const u32 *words, i64 n_samples, const u32 *order, const Chunk *chunks,                     \
      const int *features, i64 n_features, i64 n_codes, i64 n_columns, i64 n_apart,               \
      const int *quanta, const unsigned short *labels, const float *weights, double per_quantum,  \
      u64 *cells) {                                                                               \
    sum_by_bin<kind, n_words>(words, n_samples, order, chunks, features, n_features, n_codes,     \
                              n_columns, n_apart, quanta, labels, weights, per_quantum, cells);   \
  }
HISTOGRAM_KERNEL(sum_rows_1, ROWS, 1)
HISTOGRAM_KERNEL(sum_rows_2, ROWS, 2)
HISTOGRAM_KERNEL(sum_rows_4, ROWS, 4)
HISTOGRAM_KERNEL(sum_labels_1, LABELS, 1)
HISTOGRAM_KERNEL(sum_labels_2, LABELS, 2)
HISTOGRAM_KERNEL(sum_labels_4, LABELS, 4)
HISTOGRAM_KERNEL(count_bins_1, COUNTS, 1)
HISTOGRAM_KERNEL(count_bins_2, COUNTS, 2)
HISTOGRAM_KERNEL(count_bins_4, COUNTS, 4)

// Test of a node: feature, last bin on the left, code of missing values, and whether these go left;
// index of the set of categories that go right, or -1.
struct Test {
  int feature, position, missing_code, missing_left, category_set;
};

__device__ inline bool goes_right(u32 code, const Test &test, const u32 *sets) {
  const bool missing = code == (u32)test.missing_code;
  if (test.category_set < 0)
    return (int)code > test.position && !(test.missing_left && missing);
  if (missing) return !test.missing_left;
  return sets[8 * test.category_set + (code >> 5)] >> (code & 31u) & 1u;
}

// Index of a sample of a tile among those that go to the same side. A tile has up to 32 * 32
// samples; `counts` (33) is shared. All threads of the block have to call this.
__device__ inline int place_in_tile(bool here, bool right, int *counts, int *n_left_of_tile) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
  const u32 lefts = __ballot_sync(0xffffffffu, here && !right);
  const u32 rights = __ballot_sync(0xffffffffu, here && right);
  if (lane == 0) counts[warp] = __popc(lefts) | __popc(rights) << 16;
  __syncthreads();
  int before = 0, all = 0;
  for (int w = 0; w < n_warps; w++) {
    before += w < warp ? counts[w] : 0;
    all += counts[w];
  }
  __syncthreads();
  *n_left_of_tile = all & 0xffff;
  const u32 below = (1u << lane) - 1u;
  return right ? (before >> 16) + __popc(rights & below) : (before & 0xffff) + __popc(lefts & below);
}

// Counts the samples of each chunk that go left, and marks jobs with missing values.
extern "C" __global__ void count_left(const u32 *words, i64 n_samples, const u32 *order,
                                      const Chunk *chunks, const Test *tests, const u32 *sets,
                                      u32 *n_left, u32 *missing) {
  __shared__ u32 n_found, any_missing;
  if (threadIdx.x == 0) n_found = any_missing = 0;
  __syncthreads();
  const Chunk chunk = chunks[blockIdx.x];
  const Test test = tests[chunk.job];
  u32 n_mine = 0;
  bool seen = false;
  for (i64 place = chunk.start + threadIdx.x; place < chunk.end; place += blockDim.x) {
    const u32 code = code_of(words, n_samples, test.feature, order[place]);
    n_mine += !goes_right(code, test, sets);
    seen |= code == (u32)test.missing_code;
  }
  atomicAdd(&n_found, n_mine);
  if (seen) atomicMax(&any_missing, 1u);
  __syncthreads();
  if (threadIdx.x == 0) {
    n_left[blockIdx.x] = n_found;
    if (any_missing) atomicMax(missing + chunk.job, 1u);
  }
}

// Writes the samples of each chunk to their places in `moved`; each side keeps its order.
extern "C" __global__ void divide(const u32 *words, i64 n_samples, const u32 *order,
                                  const Chunk *chunks, const Test *tests, const u32 *sets,
                                  const i64 *first_left, const i64 *first_right, u32 *moved) {
  __shared__ int counts[33];
  const Chunk chunk = chunks[blockIdx.x];
  const Test test = tests[chunk.job];
  i64 left = first_left[blockIdx.x], right = first_right[blockIdx.x];
  for (i64 start = chunk.start; start < chunk.end; start += blockDim.x) {
    const i64 place = start + threadIdx.x;
    const bool here = place < chunk.end;
    const u32 sample = here ? order[place] : 0;
    const bool to_right =
        here && goes_right(code_of(words, n_samples, test.feature, sample), test, sets);
    int n_left;
    const int rank = place_in_tile(here, to_right, counts, &n_left);
    if (here) moved[(to_right ? right : left) + rank] = sample;
    left += n_left;
    right += min((i64)blockDim.x, chunk.end - start) - n_left;
  }
}

// Bins (n_features, n_samples) as words of four features.
extern "C" __global__ void pack(const u8 *bins, i64 n_features, i64 n_samples, u32 *words) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  const i64 first = 4 * (i64)blockIdx.y;
  if (i >= n_samples) return;
  u32 word = 0;
  for (int b = 0; b < 4 && first + b < n_features; b++)
    word |= (u32)bins[(first + b) * n_samples + i] << (8 * b);
  words[blockIdx.y * n_samples + i] = word;
}

// Leaves of all samples in a tree, found by their bins; `left` of a leaf is the leaf itself.
extern "C" __global__ void descend(const u32 *words, i64 n_samples, const Test *tests,
                                   const int *left, const u32 *sets, int *leaves) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n_samples) return;
  int node = 0;
  while (left[node] != node) {
    const Test test = tests[node];
    const u32 code = code_of(words, n_samples, test.feature, (u32)i);
    node = left[node] + goes_right(code, test, sets);
  }
  leaves[i] = node;
}
