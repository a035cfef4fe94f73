// Elementwise functions.
#include "portable.cuh"

extern "C" __global__ void exp_of(const double *values, double *out, i64 n) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = portable_exp(values[i]);
}

extern "C" __global__ void log_of(const double *values, double *out, i64 n) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = portable_log(values[i]);
}
