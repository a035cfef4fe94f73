// Scores of samples by the trees of a forest, as in badacost/tree/forest_kernels.py.
#include "portable.cuh"

struct Node {
  double threshold;
  int feature, left;
};

__device__ inline int leaf_of(const double *wide, const float *narrow, const Node *nodes,
                              const bool *missing_left, const int *category_set, const u32 *sets,
                              i64 depth) {
  int node = 0;
  for (i64 level = 0; level < depth; level++) {
    const Node test = nodes[node];
    if (test.left == node) break;
    const double x = wide ? wide[test.feature] : (double)narrow[test.feature];
    bool right;
    if (x != x) {
      right = !missing_left[node];
    } else if (category_set[node] >= 0) {
      const u32 code = (u32)x;
      right = sets[8 * category_set[node] + (code >> 5)] >> (code & 31u) & 1u;
    } else {
      right = x >= test.threshold;
    }
    node = test.left + right;
  }
  return node;
}

// Adds the weighted table rows of the leaves of each sample to its scores, tree after tree. X is
// `wide` (double precision) or `narrow` (single precision). A block has `n_apart` of the scores of
// its samples in shared memory.
extern "C" __global__ void accumulate(const double *wide, const float *narrow, bool is_wide, i64 n,
                                      i64 n_features, const Node *nodes, const bool *missing_left,
                                      const int *category_set, const u32 *sets, const i64 *offsets,
                                      const i64 *depths, const int *value, const double *weights,
                                      const double *table, i64 n_outputs, i64 first_tree,
                                      i64 last_tree, i64 n_apart, double *scores) {
  DYNAMIC_SHARED(double, lines);
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  const i64 first = blockIdx.y * n_apart;
  const int n_here = (int)min(n_apart, n_outputs - first);
  if (i >= n) return;
  double *line = lines + threadIdx.x, *mine = scores + i * n_outputs + first;
  for (int k = 0; k < n_here; k++) line[k * blockDim.x] = mine[k];
  const double *wide_row = is_wide ? wide + i * n_features : 0;
  const float *narrow_row = is_wide ? 0 : narrow + i * n_features;
  for (i64 tree = first_tree; tree < last_tree; tree++) {
    const i64 start = offsets[tree];
    const int leaf = leaf_of(wide_row, narrow_row, nodes + start, missing_left + start,
                             category_set + start, sets, depths[tree]);
    const double weight = weights[tree];
    const double *row = table + (i64)value[start + leaf] * n_outputs + first;
    for (int k = 0; k < n_here; k++) line[k * blockDim.x] += weight * row[k];
  }
  for (int k = 0; k < n_here; k++) mine[k] = line[k * blockDim.x];
}

// Replaces categories by their index among the known ones, unknown ones by NaN.
extern "C" __global__ void encode_categories(double *X, i64 n, i64 n_features, const i64 *limits,
                                             const double *known) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (i64 feature = blockIdx.y; feature < n_features; feature += gridDim.y) {
    const i64 start = limits[feature], n_known = limits[feature + 1] - start;
    if (n_known == 0) continue;
    const double x = X[i * n_features + feature];
    i64 low = 0, high = n_known;
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if (known[start + middle] < x)
        low = middle + 1;
      else
        high = middle;
    }
    const bool found = low < n_known && known[start + low] == x;
    X[i * n_features + feature] = found ? (double)low : __longlong_as_double(0x7ff8000000000000LL);
  }
}
