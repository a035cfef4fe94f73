// Types and functions for several kernels. Exponential and logarithm equal those of
// badacost/_utils/portable_kernels.py, bit by bit: the same operations in the same order, compiled
// without fused multiplications and additions.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// Shared memory of a block, whose size is an argument of the launch.
#ifndef DYNAMIC_SHARED
extern __shared__ __align__(16) u8 shared_bytes[];
#define DYNAMIC_SHARED(type, name) type *name = reinterpret_cast<type *>(shared_bytes)
#endif

// Term for the upper half of a sum, after the addition of `value` to its lower half `old`.
__device__ inline u32 above_of(u32 old, u64 value) {
  return (u32)(value >> 32) + (old + (u32)value < old ? 1u : 0u);
}

// Adds to a number of 64 bits in shared memory, which is stored as two halves.
__device__ inline void add_halves(u32 *low, u32 *high, u64 value) {
  const u32 above = above_of(atomicAdd(low, (u32)value), value);
  if (above) atomicAdd(high, above);
}

__device__ inline double power_of_two(i64 k) { return __longlong_as_double((k + 1023) << 52); }

__device__ inline double portable_exp(double x) {
  const double whole_shift = 6755399441055744.0;  // 1.5 * 2**52
  x = x < -746.0 ? -746.0 : x;
  x = x > 710.0 ? 710.0 : x;
  const double shifted = x * 0x1.71547652b82fep+0 + whole_shift;
  const i64 k = __double_as_longlong(shifted) - 0x4338000000000000LL;
  const double whole = shifted - whole_shift;
  const double high = x - whole * 0x1.62e42fefa3800p-1;
  const double low = whole * 0x1.ef35793c76730p-45;
  const double r = high - low;
  double q = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0;
  q = q * r + 1.0 / 39916800.0;
  q = q * r + 1.0 / 3628800.0;
  q = q * r + 1.0 / 362880.0;
  q = q * r + 1.0 / 40320.0;
  q = q * r + 1.0 / 5040.0;
  q = q * r + 1.0 / 720.0;
  q = q * r + 1.0 / 120.0;
  q = q * r + 1.0 / 24.0;
  q = q * r + 1.0 / 6.0;
  q = q * r + 0.5;
  const double y = 1.0 + (high + (r * r * q - low));
  const i64 half = k >> 1;
  return y * power_of_two(half) * power_of_two(k - half);
}

__device__ inline double portable_log(double x) {
  const double whole_shift = 6755399441055744.0;
  const bool tiny = x < 0x1p-1022;
  const i64 bits = __double_as_longlong(tiny ? x * 0x1p54 : x);
  i64 k = (bits - 0x3fe6a09e667f3bcdLL) >> 52;
  const double f = __longlong_as_double(bits - (i64)((u64)k << 52)) - 1.0;
  k = tiny ? k - 54 : k;
  const double whole = __longlong_as_double(k + 0x4338000000000000LL) - whole_shift;
  const double s = f / (f + 2.0);
  const double z = s * s;
  double r = z * (2.0 / 23.0) + 2.0 / 21.0;
  r = r * z + 2.0 / 19.0;
  r = r * z + 2.0 / 17.0;
  r = r * z + 2.0 / 15.0;
  r = r * z + 2.0 / 13.0;
  r = r * z + 2.0 / 11.0;
  r = r * z + 2.0 / 9.0;
  r = r * z + 2.0 / 7.0;
  r = r * z + 2.0 / 5.0;
  r = r * z + 2.0 / 3.0;
  r = r * z;
  const double half_square = 0.5 * f * f;
  double y = whole * 0x1.62e42fefa3800p-1 -
             ((half_square - (s * (half_square + r) + whole * 0x1.ef35793c76730p-45)) - f);
  const double infinity = __longlong_as_double(0x7ff0000000000000LL);
  y = x < infinity ? y : x;
  y = x > 0.0 ? y : __longlong_as_double(0x7ff8000000000000LL);
  return x == 0.0 ? -infinity : y;
}
