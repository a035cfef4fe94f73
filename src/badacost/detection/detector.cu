// What a detector does with images: the operations of detection/*_kernels.py in the same order, so
// that features, scores and labels are the same to the last bit. Products and sums are rounded one
// by one (the compiler must not contract them), except where fmaf is written out, here as there.
//
// One launch works on all images or levels of a table: each block along x has a place, which is a
// row of the table and the first of the cells that its threads work on; blockIdx.y is the plane.
#include "portable.cuh"

struct Place { int row, first; };

// An image whose channels are computed: pixels, cells, and where its colours (three planes), a
// plane of pixels and its channels begin.
struct Real { int height, width, rows, columns, colours, pixels, channels; };

// Planes to be resampled, and where the tables of their weights and factors begin.
struct Resampling {
  int source, source_height, source_width, target, height, width;
  int shrink;  // how many pixels a side become one, 0 where weights are used
  int start_y, weights_y, taps_y, start_x, weights_x, taps_x, factors;
};

// Resampled channels of a level, and where they go: values from row to row and from plane to plane.
struct Level { int source, height, width, target, pitch, stride; };

// Channels to be filtered and halved, and where the shares of their rows and columns begin.
struct Halving { int source, height, width, target, y_shares, x_shares; };

// Windows of a level: number of the first one, rows and columns, where the features begin.
struct Grid { int first, n_rows, n_columns, origin; };

struct alignas(8) Test { unsigned offset; float threshold; };  // read in one piece

struct Found { unsigned window, label; double score; };

// Complete trees, and what their leaves do: see cascade_kernels.scan.
struct Forest {
  const Test *tests;
  const unsigned *first_nodes, *first_leaves;
  const int *depths;
  const double *weights, *numbers;
  const unsigned short *rows;
  const double *common;
  const unsigned char *is_common;
  const double *table;
  int n_views;
};

#define FOREST                                                                                  \
  const Test *__restrict__ tests, const unsigned *__restrict__ first_nodes,                     \
      const unsigned *__restrict__ first_leaves, const int *__restrict__ depths,                \
      const double *__restrict__ weights, const double *__restrict__ numbers,                   \
      const unsigned short *__restrict__ rows, const double *__restrict__ common,               \
      const unsigned char *__restrict__ is_common, const double *__restrict__ table, i64 n_views
#define OF_FOREST                                                                                 \
  { tests, first_nodes, first_leaves, depths, weights, numbers, rows, common, is_common, table, \
      (int)n_views }

enum { TILE = 32, BATCH = 16 };  // windows in a row of a tile; values that are loaded at a time

__device__ inline int thread_number() { return blockIdx.x * blockDim.x + threadIdx.x; }

__device__ inline int cell_number(const Place *places) {
  return places[blockIdx.x].first + (int)threadIdx.x;
}

__device__ inline int clamped(int value, int low, int high) {
  return value < low ? low : value > high ? high : value;
}

__device__ inline int reflected(int position, int length) {
  if (position >= 0 && position < length) return position;
  position %= 2 * length;
  if (position < 0) position += 2 * length;
  return position < length ? position : 2 * length - 1 - position;
}

extern "C" __global__ void clear(unsigned long long *counts, i64 n_counts) {
  int i = thread_number();
  if (i < n_counts) counts[i] = 0;
}

// RGB pixels of images of one size, one after the other, to planes L, U and V.
extern "C" __global__ void luv(const unsigned char *images, const float *matrix,
                               const float *lightness, i64 top, i64 n_pixels, float *out) {
  int i = thread_number();
  if (i >= n_pixels) return;
  const unsigned char *pixel = images + 3 * ((i64)blockIdx.y * n_pixels + i);
  float *planes = out + 3 * (i64)blockIdx.y * n_pixels;
  float r = pixel[0], g = pixel[1], b = pixel[2];
  float x = matrix[0] * r + matrix[1] * g + matrix[2] * b;
  float y = matrix[3] * r + matrix[4] * g + matrix[5] * b;
  float z = matrix[6] * r + matrix[7] * g + matrix[8] * b;
  float inverse = 1.0f / (x + (1e-35f + (15.0f * y + 3.0f * z)));
  float l = lightness[clamped((int)(y * 1024.0f), 0, top)];
  float u = 52.0f * x * inverse - (float)(13 * 0.197833);
  float v = 117.0f * y * inverse - (float)(13 * 0.468331);
  planes[i] = l;
  planes[n_pixels + i] = l * u + (float)(88.0 / 270.0);
  planes[2 * n_pixels + i] = l * v + (float)(134.0 / 270.0);
}

__device__ float resampled_in_row(const float *row, const Resampling &job, const int *starts,
                                  const float *weights, int x) {
  if (job.source_width == job.width) return row[x];
  row += starts[job.start_x + x];
  const float *weight = weights + job.weights_x + x;
  if (job.taps_x == 2 || job.taps_x == 3) {
    float total = weight[0] * row[0] + weight[job.width] * row[1];
    return job.taps_x == 2 ? total : total + weight[2 * job.width] * row[2];
  }
  float total = 0.0f;
  for (int k = 0; k < job.taps_x; ++k) total += weight[k * job.width] * row[k];
  return total;
}

extern "C" __global__ void resample(const Place *places, const Resampling *jobs, const int *starts,
                                    const float *weights, const float *factors, const float *source,
                                    float *target) {
  Resampling job = jobs[places[blockIdx.x].row];
  int i = cell_number(places);
  if (i >= job.height * job.width) return;
  int y = i / job.width, x = i % job.width;
  i64 size = job.source_height * job.source_width;
  const float *plane = source + job.source + blockIdx.y * size;
  float factor = factors[job.factors + blockIdx.y], value = 0.0f;
  if (job.shrink) {
    for (int row = 0; row < job.shrink; ++row) {
      const float *cell = plane + (y * job.shrink + row) * job.source_width + x * job.shrink;
      float sum = cell[0];
      for (int k = 1; k < job.shrink; ++k) sum += cell[k];
      value += sum;
    }
    value *= factor;
  } else {
    int start = starts[job.start_y + y];
    for (int k = 0; k < job.taps_y; ++k) {
      float weight = weights[job.weights_y + k * job.height + y] * factor;
      const float *row = plane + (start + k) * job.source_width;
      float term = weight * resampled_in_row(row, job, starts, weights, x);
      value = k ? value + term : term;
    }
  }
  target[job.target + (i64)blockIdx.y * job.height * job.width + i] = value;
}

__device__ inline float smooth_in_row(const float *row, int width, int x) {
  return (row[x ? x - 1 : 0] + 2.0f * row[x]) + row[x + 1 < width ? x + 1 : x];
}

__device__ inline float smooth_at(const float *plane, int height, int width, int y, int x) {
  float above = smooth_in_row(plane + (y ? y - 1 : 0) * width, width, x);
  float middle = smooth_in_row(plane + y * width, width, x);
  float below = smooth_in_row(plane + (y + 1 < height ? y + 1 : y) * width, width, x);
  return ((above + 2.0f * middle) + below) * (1.0f / 16.0f);
}

// Planes of a level: those of the colours, or those of an array of pixels.
__device__ inline int planes_of(const Real &level, bool of_colours) {
  return of_colours ? level.colours : (int)gridDim.y * level.pixels;
}

extern "C" __global__ void smooth(const Place *places, const Real *levels, bool of_colours,
                                  const float *source, float *out) {
  Real level = levels[places[blockIdx.x].row];
  int i = cell_number(places), size = level.height * level.width;
  if (i >= size) return;
  const float *plane = source + planes_of(level, of_colours) + blockIdx.y * size;
  out[gridDim.y * level.pixels + blockIdx.y * size + i] =
      smooth_at(plane, level.height, level.width, i / level.width, i % level.width);
}

// Triangle filter of a line of values, `step` apart. Loads wait for sums at its ends only, in
// kernels whose bounds leave enough registers to a thread.
__device__ inline void triangle(const float *__restrict__ from, float *__restrict__ to, int length,
                                int step, int side, float unit) {
  float slope = 0.0f, value = 0.0f;
  for (int k = 0; k < side; ++k) {
    slope += from[reflected(k, length) * step];
    value += slope;
  }
  value = (2.0f * value - slope) * unit;
  slope = 0.0f;
  for (int x = 0; x < length;) {
    if (x < side || x + side + BATCH > length) {
      float left = from[reflected(x - side, length) * step];
      float right = from[reflected(x + side, length) * step];
      to[x * step] = value;
      slope += (left + right) - 2.0f * from[x * step];
      value += unit * slope;
      ++x;
      continue;
    }
    float left[BATCH], right[BATCH], middle[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
      left[k] = from[(x + k - side) * step];
      right[k] = from[(x + k + side) * step];
      middle[k] = from[(x + k) * step];
    }
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
      to[(x + k) * step] = value;
      slope += (left[k] + right[k]) - 2.0f * middle[k];
      value += unit * slope;
    }
    x += BATCH;
  }
}

extern "C" __global__ void __launch_bounds__(32)
    triangle_along_rows(const Place *places, const Real *levels, bool of_colours, i64 radius,
                        double divisor, const float *source, float *out) {
  Real level = levels[places[blockIdx.x].row];
  int y = cell_number(places), width = level.width;
  if (y >= level.height) return;
  int place = blockIdx.y * level.height * width + y * width;
  triangle(source + planes_of(level, of_colours) + place, out + gridDim.y * level.pixels + place,
           width, 1, (int)radius + 1, 1.0f / (float)divisor);
}

extern "C" __global__ void __launch_bounds__(32)
    triangle_along_columns(const Place *places, const Real *levels, i64 radius, const float *source,
                           float *out) {
  Real level = levels[places[blockIdx.x].row];
  int x = cell_number(places), height = level.height, width = level.width;
  if (x >= width) return;
  int place = gridDim.y * level.pixels + blockIdx.y * height * width + x;
  triangle(source + place, out + place, height, width, (int)radius + 1, 1.0f);
}

// Gradient of the colour in which it is strongest.
extern "C" __global__ void gradient(const Place *places, const Real *levels, bool smoothed,
                                    const float *colours, const float *arc_cosine, i64 middle,
                                    bool full, float *magnitude, float *orientation) {
  Real level = levels[places[blockIdx.x].row];
  int i = cell_number(places), width = level.width, size = level.height * width;
  if (i >= size) return;
  int y = i / width, x = i % width;
  int above = y ? y - 1 : 0, below = y + 1 < level.height ? y + 1 : y;
  int left = x ? x - 1 : 0, right = x + 1 < width ? x + 1 : x;
  float vertical = below - above == 2 ? 0.5f : 1.0f;
  float horizontal = right - left == 2 ? 0.5f : 1.0f;
  const float *plane = colours + (smoothed ? 3 * level.pixels : level.colours);
  float best_dx = 0.0f, best_dy = 0.0f;
  for (int k = 0; k < 3; ++k, plane += size) {
    float dx = (plane[y * width + right] - plane[y * width + left]) * horizontal;
    float dy = (plane[below * width + x] - plane[above * width + x]) * vertical;
    if (k == 0 || dx * dx + dy * dy > best_dx * best_dx + best_dy * best_dy) {
      best_dx = dx;
      best_dy = dy;
    }
  }
  float inverse = 1.0f / sqrtf(best_dx * best_dx + best_dy * best_dy);
  inverse = inverse < 1e10f ? inverse : 1e10f;
  float upward = best_dy < 0.0f ? -best_dx : best_dx;
  int step = (int)(upward * inverse * 10000.0f);
  float angle = arc_cosine[clamped(step, -middle, middle) + middle];
  if (full) angle += best_dy < 0.0f ? (float)3.14159265358979323846 : 0.0f;
  magnitude[level.pixels + i] = 1.0f / inverse;
  orientation[level.pixels + i] = angle;
}

extern "C" __global__ void normalise(i64 n_pixels, const float *magnitude, const float *smooth,
                                     double constant, float *out) {
  int i = thread_number();
  if (i < n_pixels) out[i] = magnitude[i] * (1.0f / (smooth[i] + (float)constant));
}

// Mean colours (three planes) and mean magnitude (the fourth) of cells.
extern "C" __global__ void shrink_planes(const Place *places, const Real *levels, bool smoothed,
                                         i64 shrink, double factor, const float *colours,
                                         const float *magnitude, float *channels) {
  Real level = levels[places[blockIdx.x].row];
  int i = cell_number(places), n_cells = level.rows * level.columns;
  if (i >= n_cells) return;
  const float *plane = magnitude + level.pixels;
  if (blockIdx.y < 3)
    plane = colours + (smoothed ? 3 * level.pixels : level.colours) +
            blockIdx.y * level.height * level.width;
  plane += i / level.columns * shrink * level.width + i % level.columns * shrink;
  float value = 0.0f;
  for (int row = 0; row < shrink; ++row, plane += level.width) {
    float sum = plane[0];
    for (int k = 1; k < shrink; ++k) sum += plane[k];
    value += sum;
  }
  channels[level.channels + blockIdx.y * n_cells + i] = value * (float)factor;
}

// Magnitudes by orientation in cells; blockIdx.y is the orientation.
extern "C" __global__ void histogram(const Place *places, const Real *levels, i64 size,
                                     const float *taps, i64 n_taps, double scale, double border,
                                     const float *magnitude, const float *orientation,
                                     float *channels) {
  Real level = levels[places[blockIdx.x].row];
  int i = cell_number(places), n_cells = level.rows * level.columns, n_bins = gridDim.y;
  if (i >= n_cells) return;
  int row = i / level.columns, column = i % level.columns, reach = (int)(n_taps - size) / 2;
  float centre = (float)blockIdx.y, circle = (float)n_bins, total = 0.0f;
  for (int ty = 0; ty < n_taps; ++ty) {
    int y = row * size - reach + ty;
    if (y < 0 || y >= level.height) continue;
    float sum = 0.0f;
    for (int tx = 0; tx < n_taps; ++tx) {
      int x = column * size - reach + tx;
      if (x < 0 || x >= level.width) continue;
      int place = level.pixels + y * level.width + x;
      float part = magnitude[place];
      if (n_bins > 1) {
        float position = orientation[place] * (float)scale, distance = fabsf(position - centre);
        float other = circle - distance;
        float share = 1.0f - (distance < other ? distance : other);
        part *= share > 0.0f ? share : 0.0f;
      }
      sum += taps[tx] * part;
    }
    total += taps[ty] * sum;
  }
  if (column == 0) total *= (float)border;
  if (column == level.columns - 1) total *= (float)border;
  if (row == 0) total *= (float)border;
  if (row == level.rows - 1) total *= (float)border;
  channels[level.channels + (4 + blockIdx.y) * n_cells + i] = total;
}

// Smooth and pad; colours, the first three planes, go on beyond the border, others with zeros.
extern "C" __global__ void finish(const Place *places, const Level *levels, bool is_smooth,
                                  i64 pad_y, i64 pad_x, const float *source, float *target) {
  Level level = levels[places[blockIdx.x].row];
  int i = cell_number(places), width = level.width + 2 * pad_x;
  if (i >= (level.height + 2 * pad_y) * width) return;
  int y = i / width - pad_y, x = i % width - pad_x;
  int inner_y = clamped(y, 0, level.height - 1), inner_x = clamped(x, 0, level.width - 1);
  const float *plane = source + level.source + blockIdx.y * level.height * level.width;
  float value = 0.0f;
  if (blockIdx.y < 3 || (inner_y == y && inner_x == x))
    value = is_smooth ? smooth_at(plane, level.height, level.width, inner_y, inner_x)
                      : plane[inner_y * level.width + inner_x];
  i64 place = level.target + (i64)blockIdx.y * level.stride + (i64)(i / width) * level.pitch;
  target[place + i % width] = value;
}

// Convolve with filters of 5 x 5 and halve; blockIdx.y counts the channels for four filters each.
extern "C" __global__ void decorrelate(const Place *places, const Halving *jobs,
                                       const float *shares, const float *filters, i64 n_filters,
                                       i64 n_channels, i64 pitch, i64 stride, const float *source,
                                       float *target) {
  Halving job = jobs[places[blockIdx.x].row];
  int i = cell_number(places), height = job.height, width = job.width, n_out = (width + 1) / 2;
  if (i >= (height + 1) / 2 * n_out) return;
  int y = i / n_out, x = i % n_out;
  int channel = blockIdx.y % n_channels, first = blockIdx.y / n_channels * 4;
  const float *plane = source + job.source + channel * height * width;
  const float *share = shares + job.y_shares + 3 * y;
  float p = share[0], q = share[1], r = share[2], sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  float above[7], middle[7] = {}, below[7] = {};
  for (int j = 0; j < 7; ++j) {
    int line = 2 * y - 3 + j;
    for (int k = 0; k < 7; ++k) {
      int column = 2 * x - 3 + k;
      bool inside = line >= 0 && line < height && column >= 0 && column < width;
      above[k] = middle[k];
      middle[k] = below[k];
      below[k] = inside ? plane[line * width + column] : 0.0f;
    }
    if (j < 2) continue;
    float row[7], cells[5];
    for (int k = 0; k < 7; ++k)
      row[k] = p == 0.0f ? fmaf(q, middle[k], r * below[k])
                         : fmaf(r, below[k], fmaf(p, above[k], q * middle[k]));
    if (width % 2) {
      const float *part = shares + job.x_shares + x;
      float before = part[0], at = part[n_out], after = part[2 * n_out];
      for (int k = 0; k < 5; ++k)
        cells[k] = fmaf(after, row[k + 2], fmaf(before, row[k], at * row[k + 1]));
    } else {
      for (int k = 0; k < 5; ++k) cells[k] = row[k + 1] + row[k + 2];
    }
    for (int f = 0; f < 4; ++f) {
      if (first + f >= n_filters) break;
      const float *filter = filters + (((first + f) * n_channels + channel) * 5 + j - 2) * 5;
      float sum = fmaf(filter[0], cells[0], filter[1] * cells[1]);
      for (int k = 2; k < 5; ++k) sum = fmaf(filter[k], cells[k], sum);
      sums[f] += sum;
    }
  }
  target += job.target + y * pitch + x;
  for (int f = 0; f < 4 && first + f < n_filters; ++f)
    target[((first + f) * n_channels + channel) * stride] = sums[f];
}

// Leaf of a complete tree, counted from its first one, that a window reaches.
__device__ inline unsigned leaf_in(const Test *tests, int depth, const float *features,
                                   unsigned base) {
  unsigned node = 0;
  for (int level = 0; level < depth; ++level) {
    Test test = tests[node];
    node = 2 * node + 1 + (features[base + test.offset] >= test.threshold);
  }
  return node - ((1u << depth) - 1);
}

__device__ inline unsigned leaf_of(const Forest &forest, const float *features, unsigned base,
                                   int tree) {
  const Test *tests = forest.tests + forest.first_nodes[tree];
  return forest.first_leaves[tree] + leaf_in(tests, forest.depths[tree], features, base);
}

// What a leaf adds to the scores of all views, and the row that it adds to their margins or -1.
struct Vote {
  double common;
  int row;
};

__device__ inline Vote vote_of(const Forest &forest, int tree, unsigned leaf) {
  if (forest.n_views == 0) return {forest.numbers[leaf], -1};
  int row = forest.rows[leaf];
  return {forest.weights[tree] * forest.common[row], forest.is_common[row] ? -1 : row};
}

// Scores of a window: the sum of what is common to all views, and the margins of views.
struct Scores {
  double sum, best;
  double *margins;  // those of views are `stride` apart
  int stride;
  bool has_votes;

  __device__ void add(const Forest &forest, int tree, unsigned leaf) {
    Vote vote = vote_of(forest, tree, leaf);
    sum = sum + vote.common;
    if (vote.row < 0) return;
    const double *row = forest.table + vote.row * forest.n_views;
    for (int view = 0; view < forest.n_views; ++view) {
      double margin = has_votes ? margins[view * stride] : 0.0;
      margin = margin + forest.weights[tree] * row[view];
      margins[view * stride] = margin;
      best = view == 0 || margin > best ? margin : best;
    }
    has_votes = true;
  }
};

__device__ inline Grid grid_of_window(const Grid *grids, int n_levels, int window, int *level) {
  int low = 0, high = n_levels - 1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (grids[middle].first <= window) low = middle;
    else high = middle - 1;
  }
  *level = low;
  return grids[low];
}

// How many trees the windows of a level saw, and how many levels these have.
__device__ inline void count(u64 *counts, int level, u64 n_evaluated, u64 n_passed) {
  if (n_evaluated == 0) return;
  atomicAdd(counts + 2 * level, n_evaluated);
  atomicAdd(counts + 2 * level + 1, n_passed);
}

// Send the windows of a tile through the first trees, and list those that are alive then. Tests are
// copied to shared memory, for the trees up to each of `stops`. After some trees, the first threads
// take over the windows that are left.
extern "C" __global__ void scan_tiles(const Place *places, const float *features, const Grid *grids,
                                      i64 pitch, i64 step, FOREST, const double *rejections,
                                      const int *stops, i64 n_stops, i64 capacity,
                                      const int *n_tests, u64 *counts, int *alive, u64 *n_alive) {
  Forest forest = OF_FOREST;
  Place place = places[blockIdx.x];
  Grid grid = grids[place.row];
  int n_threads = blockDim.x, thread = threadIdx.x;
  DYNAMIC_SHARED(double, sums);
  double *bests = sums + n_threads, *margins = bests + n_threads;
  Test *copies = reinterpret_cast<Test *>(margins + n_threads * n_views);
  int *slots = reinterpret_cast<int *>(copies + capacity);  // plus n_threads if there are votes
  __shared__ int n_left, first_alive;
  int n_tiles = (grid.n_columns + TILE - 1) / TILE, tile = place.first / n_threads;
  int top = tile / n_tiles * (n_threads / TILE), left = tile % n_tiles * TILE;
  int slot = thread, n_given = n_threads;
  bool is_alive = top + slot / TILE < grid.n_rows && left + slot % TILE < grid.n_columns;
  Scores scores = {0.0, 0.0, margins + slot, n_threads, false};
  u64 n_evaluated = 0, n_passed = 0;
  for (int k = 0, tree = 0; k < n_stops; ++k) {
    int stop = stops[k], last = stop - 1, first_node = forest.first_nodes[tree];
    int end_node = (int)forest.first_nodes[last] + (1 << forest.depths[last]) - 1;
    for (int i = first_node + thread; i < end_node; i += n_threads)
      copies[i - first_node] = forest.tests[i];
    if (thread == 0) n_left = 0;
    __syncthreads();
    int row = top + slot / TILE, column = left + slot % TILE;
    unsigned base = grid.origin + (unsigned)(row * pitch + column) * step;
    for (; tree < stop; ++tree) {
      if (!is_alive) continue;
      const Test *own = copies + (forest.first_nodes[tree] - first_node);
      unsigned leaf = leaf_in(own, forest.depths[tree], features, base);
      scores.add(forest, tree, forest.first_leaves[tree] + leaf);
      is_alive = scores.sum + scores.best > rejections[tree];
      if (!is_alive) {
        n_evaluated += tree + 1;
        n_passed += n_tests[tree + 1];
      }
    }
    unsigned votes = __ballot_sync(0xffffffffu, is_alive);
    int position = 0;
    if (thread % 32 == 0 && votes) position = atomicAdd(&n_left, __popc(votes));
    position = __shfl_sync(0xffffffffu, position, 0) + __popc(votes & ((1u << thread % 32) - 1));
    if (is_alive) {
      slots[position] = slot + (scores.has_votes ? n_threads : 0);
      sums[slot] = scores.sum;
      bests[slot] = scores.best;
    }
    __syncthreads();
    n_given = n_left;
    is_alive = thread < n_given;
    if (n_given == 0) break;
    if (is_alive) {
      slot = slots[thread] % n_threads;
      scores = {sums[slot], bests[slot], margins + slot, n_threads, slots[thread] >= n_threads};
    }
    __syncthreads();
  }
  for (int distance = 16; distance; distance /= 2) {
    n_evaluated += __shfl_down_sync(0xffffffffu, n_evaluated, distance);
    n_passed += __shfl_down_sync(0xffffffffu, n_passed, distance);
  }
  if (thread % 32 == 0) count(counts, place.row, n_evaluated, n_passed);
  if (thread == 0 && n_given) first_alive = (int)atomicAdd(n_alive, (u64)n_given);
  __syncthreads();
  if (is_alive)
    alive[first_alive + thread] =
        grid.first + (top + slot / TILE) * grid.n_columns + left + slot % TILE;
}

// Send windows, one for each block at a time, through the trees up to `end`, from the first one on:
// threads find the leaves of a tree each, and then add up the margins of a view each. A window
// passes a tree if it does with any view.
extern "C" __global__ void scan_trees(const float *features, const Grid *grids, i64 n_levels,
                                      i64 n_windows, i64 pitch, i64 step, FOREST,
                                      const double *rejections, i64 end, bool is_first,
                                      bool is_last, double min_score, i64 first_window,
                                      const int *n_tests, u64 *counts, const int *alive,
                                      const u64 *n_alive, int *alive_next, u64 *n_alive_next,
                                      Found *found, u64 *n_found) {
  Forest forest = OF_FOREST;
  int n_given = is_first ? n_windows : (int)*n_alive;
  int n_threads = blockDim.x, thread = threadIdx.x, n_columns = n_views ? n_views : 1;
  DYNAMIC_SHARED(double, margins);
  double *commons = margins + n_columns;
  int *chosen = reinterpret_cast<int *>(commons + n_threads);
  unsigned *passed = reinterpret_cast<unsigned *>(chosen + n_threads);  // a bit for each tree
  for (int i = blockIdx.x; i < n_given; i += gridDim.x) {
    int window = is_first ? i : alive[i], level;
    Grid grid = grid_of_window(grids, n_levels, window, &level);
    int number = window - grid.first, row = number / grid.n_columns;
    unsigned base = grid.origin + (unsigned)(row * pitch + number % grid.n_columns) * step;
    for (int view = thread; view < n_columns; view += n_threads) margins[view] = 0.0;
    double sum = 0.0;
    int n_seen = 0;
    bool is_alive = true;
    for (int first = 0; first < end && is_alive; first += n_threads) {
      int n_trees = end - first < n_threads ? end - first : n_threads;
      if (thread < n_trees) {
        int tree = first + thread;
        Vote vote = vote_of(forest, tree, leaf_of(forest, features, base, tree));
        commons[thread] = vote.common;
        chosen[thread] = vote.row;
      }
      if (thread % 32 == 0) passed[thread / 32] = 0;
      __syncthreads();
      double before = sum;
      for (int view = thread; view < n_columns; view += n_threads) {
        double margin = margins[view];
        sum = before;
        for (int word = 0; word * 32 < n_trees; ++word) {
          unsigned passes = 0;
          int n_bits = n_trees - word * 32 < 32 ? n_trees - word * 32 : 32;
#pragma unroll 8
          for (int bit = 0; bit < n_bits; ++bit) {
            int k = word * 32 + bit, tree = first + k;
            double part = chosen[k] < 0 ? 0.0 : forest.table[chosen[k] * n_columns + view];
            sum = sum + commons[k];
            margin = margin + forest.weights[tree] * part;
            passes |= (unsigned)(sum + margin > rejections[tree]) << bit;
          }
          atomicOr(passed + word, passes);
        }
        margins[view] = margin;
      }
      __syncthreads();
      n_seen = first + n_trees;
      for (int word = 0; word * 32 < n_trees && is_alive; ++word) {
        unsigned failed = ~passed[word];
        if (n_trees - word * 32 < 32) failed &= (1u << (n_trees - word * 32)) - 1;
        is_alive = failed == 0;
        if (!is_alive) n_seen = first + word * 32 + __ffs((int)failed);
      }
      __syncthreads();
    }
    if (thread == 0) {
      if (!is_alive || is_last) count(counts, level, n_seen, n_tests[n_seen]);
      if (is_alive && !is_last) alive_next[atomicAdd(n_alive_next, (u64)1)] = window;
      if (is_alive && is_last) {
        int label = 0;
        for (int view = 1; view < n_columns; ++view)
          if (margins[view] > margins[label]) label = view;
        Found one = {(unsigned)(first_window + window), (unsigned)label, sum + margins[label]};
        if (one.score >= min_score) found[atomicAdd(n_found, (u64)1)] = one;
      }
    }
    __syncthreads();
  }
}

// The three that follow are about windows which begin at `bases`.
extern "C" __global__ void trace(const float *features, const unsigned *bases, i64 n_windows,
                                 FOREST, i64 n_trees, double *margins, double *traces) {
  Forest forest = OF_FOREST;
  int i = thread_number();
  if (i >= n_windows) return;
  Scores scores = {0.0, 0.0, margins + i, (int)n_windows, false};
  for (int tree = 0; tree < n_trees; ++tree) {
    scores.add(forest, tree, leaf_of(forest, features, bases[i], tree));
    traces[i * n_trees + tree] = scores.sum + scores.best;
  }
}

extern "C" __global__ void reach(const float *features, const unsigned *bases, i64 n_windows,
                                 FOREST, i64 n_trees, const int *numbers_of_leaves, int *leaves) {
  Forest forest = OF_FOREST;
  int i = thread_number(), tree = blockIdx.y;
  if (i >= n_windows) return;
  leaves[(i64)i * n_trees + tree] = numbers_of_leaves[leaf_of(forest, features, bases[i], tree)];
}

extern "C" __global__ void poses(const float *features, const unsigned *bases, i64 n_windows,
                                 const unsigned *offsets, i64 n_features, const float *weights,
                                 const double *intercepts, i64 n_outputs, double *outputs) {
  int i = thread_number(), k = blockIdx.y;
  if (i >= n_windows) return;
  double sum = intercepts[k];
  for (int f = 0; f < n_features; ++f)
    sum = sum + (double)features[bases[i] + offsets[f]] * (double)weights[f * n_outputs + k];
  outputs[(i64)i * n_outputs + k] = sum;
}
