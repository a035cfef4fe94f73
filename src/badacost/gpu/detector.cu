// What a detector does with images: the operations of detection/*_kernels.py in the same order, so
// that features, scores and labels are the same to the last bit. Products and sums are rounded one
// by one (the compiler must not contract them), except where fmaf is written out, here as there.
//
// One launch works on all images or levels of a table: each block along x has a place, which is a
// row of the table and the first of the cells that its threads work on; blockIdx.y is the plane.
// Threads do not talk to each other.

typedef long long i64;

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

// Windows of a level: number of the first one, windows in a row, where the features begin.
struct Grid { int first, n_columns, origin; };

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

enum { AHEAD = 4 };  // trees that a window goes down at the same time, as their loads overlap

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

extern "C" __global__ void triangle_along_rows(const Place *places, const Real *levels,
                                               bool of_colours, i64 radius, double divisor,
                                               const float *__restrict__ source,
                                               float *__restrict__ out) {
  Real level = levels[places[blockIdx.x].row];
  int y = cell_number(places), width = level.width, side = (int)radius + 1;
  if (y >= level.height) return;
  int place = blockIdx.y * level.height * width + y * width;
  const float *row = source + planes_of(level, of_colours) + place;
  float *line = out + gridDim.y * level.pixels + place;
  float slope = 0.0f, value = 0.0f, unit = 1.0f / (float)divisor;
  for (int k = 0; k < side; ++k) {
    slope += row[reflected(k, width)];
    value += slope;
  }
  value = (2.0f * value - slope) * unit;
  slope = 0.0f;
#pragma unroll 8
  for (int x = 0; x < width; ++x) {
    line[x] = value;
    slope += (row[reflected(x - side, width)] + row[reflected(x + side, width)]) - 2.0f * row[x];
    value += unit * slope;
  }
}

extern "C" __global__ void triangle_along_columns(const Place *places, const Real *levels,
                                                  i64 radius, const float *__restrict__ source,
                                                  float *__restrict__ out) {
  Real level = levels[places[blockIdx.x].row];
  int x = cell_number(places), height = level.height, width = level.width, side = (int)radius + 1;
  if (x >= width) return;
  int place = gridDim.y * level.pixels + blockIdx.y * height * width + x;
  const float *column = source + place;
  float *line = out + place;
  float slope = 0.0f, value = 0.0f;
  for (int k = 0; k < side; ++k) {
    slope += column[reflected(k, height) * width];
    value += slope;
  }
  value = 2.0f * value - slope;
  slope = 0.0f;
#pragma unroll 8
  for (int y = 0; y < height; ++y) {
    line[y * width] = value;
    slope += (column[reflected(y - side, height) * width] +
              column[reflected(y + side, height) * width]) - 2.0f * column[y * width];
    value += slope;
  }
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

// Leaves that a window reaches in some trees, all of which make their loads of a level together.
__device__ inline void descend(const Forest &forest, const float *features, unsigned base, int tree,
                               int n_trees, unsigned *leaves) {
  unsigned firsts[AHEAD], nodes[AHEAD];
  int depths[AHEAD], deepest = 0;
#pragma unroll
  for (int k = 0; k < AHEAD; ++k) {
    nodes[k] = 0;
    firsts[k] = k < n_trees ? forest.first_nodes[tree + k] : 0;
    depths[k] = k < n_trees ? forest.depths[tree + k] : 0;
    deepest = depths[k] > deepest ? depths[k] : deepest;
  }
  for (int level = 0; level < deepest; ++level) {
    Test tests[AHEAD];
    float values[AHEAD];
#pragma unroll
    for (int k = 0; k < AHEAD; ++k)  // any test where the tree has no more levels
      tests[k] = forest.tests[level < depths[k] ? firsts[k] + nodes[k] : 0];
#pragma unroll
    for (int k = 0; k < AHEAD; ++k) values[k] = features[base + tests[k].offset];
#pragma unroll
    for (int k = 0; k < AHEAD; ++k) {
      unsigned right = values[k] >= tests[k].threshold;
      if (level < depths[k]) nodes[k] = 2 * nodes[k] + 1 + right;
    }
  }
#pragma unroll
  for (int k = 0; k < AHEAD; ++k)
    if (k < n_trees)
      leaves[k] = forest.first_leaves[tree + k] + nodes[k] - ((1u << depths[k]) - 1);
}

// Scores of a window: the sum of what is common to all views, and the margins of views.
struct Scores {
  double sum, best;
  double *margins;  // of thread t and view v at t + v * n_threads
  i64 n_threads;
  bool has_votes;

  __device__ void add(const Forest &forest, int tree, unsigned leaf) {
    if (forest.n_views == 0) {
      sum = sum + forest.numbers[leaf];
      return;
    }
    unsigned row = forest.rows[leaf];
    double weight = forest.weights[tree];
    sum = sum + weight * forest.common[row];
    if (forest.is_common[row]) return;
    for (int view = 0; view < forest.n_views; ++view) {
      double margin = has_votes ? margins[view * n_threads] : 0.0;
      margin = margin + weight * forest.table[row * forest.n_views + view];
      margins[view * n_threads] = margin;
      best = view == 0 || margin > best ? margin : best;
    }
    has_votes = true;
  }

  __device__ int label(const Forest &forest) const {
    int view = 0;
    if (has_votes)
      while (view < forest.n_views && margins[view * n_threads] < best) ++view;
    return view;
  }
};

__device__ inline int row_of_window(const Grid *grids, int n_levels, int window) {
  int low = 0, high = n_levels - 1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (grids[middle].first <= window) low = middle;
    else high = middle - 1;
  }
  return low;
}

__device__ inline unsigned base_of_window(const Grid *grids, int n_levels, int window, int pitch,
                                          int step) {
  Grid grid = grids[row_of_window(grids, n_levels, window)];
  int number = window - grid.first;
  return grid.origin + (unsigned)(number / grid.n_columns * pitch + number % grid.n_columns) * step;
}

// Send windows through the trees up to `end`: all windows in the first stage, later those that are
// alive, from the first tree on, as this is less work than to keep their margins.
extern "C" __global__ void scan(const float *features, const Grid *grids, i64 n_levels,
                                i64 n_windows, i64 pitch, i64 step, FOREST,
                                const double *rejections, i64 end, bool is_first, bool is_last,
                                double min_score, i64 first_window, double *margins, i64 n_threads,
                                const int *alive, const unsigned long long *n_alive,
                                int *alive_next, unsigned long long *n_alive_next, int *n_run,
                                Found *found, unsigned long long *n_found) {
  Forest forest = OF_FOREST;
  int n_given = is_first ? n_windows : (int)*n_alive, thread = thread_number();
  for (int i = thread; i < n_given; i += n_threads) {
    int window = is_first ? i : alive[i];
    unsigned base = base_of_window(grids, n_levels, window, pitch, step);
    Scores scores = {0.0, 0.0, margins + thread, n_threads, false};
    int tree = 0;
    bool is_alive = true;
    while (tree < end && is_alive) {
      unsigned leaves[AHEAD];
      int n_ahead = end - tree < AHEAD ? end - tree : AHEAD;
      descend(forest, features, base, tree, n_ahead, leaves);
#pragma unroll
      for (int k = 0; k < AHEAD; ++k) {
        if (k >= n_ahead || !is_alive) continue;
        scores.add(forest, tree, leaves[k]);
        is_alive = scores.sum + scores.best > rejections[tree];
        ++tree;
      }
    }
    if (!is_alive || is_last) n_run[window] = tree;
    if (!is_alive) continue;
    if (!is_last) {
      alive_next[atomicAdd(n_alive_next, 1ull)] = window;
    } else if (scores.sum + scores.best >= min_score) {
      Found one = {(unsigned)(first_window + window), (unsigned)scores.label(forest),
                   scores.sum + scores.best};
      found[atomicAdd(n_found, 1ull)] = one;
    }
  }
}

// Add up, for each level, how many trees its windows saw, and how many levels these have.
extern "C" __global__ void count_trees(const Grid *grids, i64 n_levels, i64 n_windows,
                                       const int *n_run, const int *n_tests,
                                       unsigned long long *counts) {
  int level = blockIdx.y, n_threads = gridDim.x * blockDim.x;
  int end = level + 1 < n_levels ? grids[level + 1].first : n_windows;
  unsigned long long n_evaluated = 0, n_passed = 0;
  for (int i = grids[level].first + thread_number(); i < end; i += n_threads) {
    n_evaluated += n_run[i];
    n_passed += n_tests[n_run[i]];
  }
  if (n_evaluated == 0) return;
  atomicAdd(counts + 2 * level, n_evaluated);
  atomicAdd(counts + 2 * level + 1, n_passed);
}

// The three that follow are about windows which begin at `bases`.
extern "C" __global__ void trace(const float *features, const unsigned *bases, i64 n_windows,
                                 FOREST, i64 n_trees, double *margins, double *traces) {
  Forest forest = OF_FOREST;
  int i = thread_number();
  if (i >= n_windows) return;
  Scores scores = {0.0, 0.0, margins + i, n_windows, false};
  for (int first = 0; first < n_trees; first += AHEAD) {
    unsigned leaves[AHEAD];
    int n_ahead = n_trees - first < AHEAD ? (int)(n_trees - first) : AHEAD;
    descend(forest, features, bases[i], first, n_ahead, leaves);
    for (int k = 0; k < n_ahead; ++k) {
      scores.add(forest, first + k, leaves[k]);
      traces[i * n_trees + first + k] = scores.sum + scores.best;
    }
  }
}

extern "C" __global__ void reach(const float *features, const unsigned *bases, i64 n_windows,
                                 FOREST, i64 n_trees, const int *numbers_of_leaves, int *leaves) {
  Forest forest = OF_FOREST;
  int i = thread_number(), tree = blockIdx.y;
  if (i >= n_windows) return;
  unsigned leaf;
  descend(forest, features, bases[i], tree, 1, &leaf);
  leaves[(i64)i * n_trees + tree] = numbers_of_leaves[leaf];
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
