// What CUDA sources need to be compiled as C++ and run on a CPU, block after block.
//
// The threads of a block are coroutines on one processor thread, which take turns at barriers:
// results are those of a GPU as long as kernels are free of races.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static  // one block at a time
#define __launch_bounds__(...)
#define __restrict__
#define DYNAMIC_SHARED(type, name) type *name = reinterpret_cast<type *>(on_cpu::shared.data())

using std::max;
using std::min;

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
inline dim3 threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = 32;

namespace on_cpu {
struct alignas(16) Chunk {
  char bytes[16];
};
constexpr size_t stack_size = 256 * 1024;
struct Thread {
  std::unique_ptr<char[]> stack;  // of a coroutine, which runs thread after thread
  jmp_buf place;
  bool done = false;
};
struct Barrier {
  unsigned arrived = 0, round = 0;
};
inline std::vector<Chunk> shared;
inline std::vector<Thread> threads;
inline std::vector<unsigned> alive;  // threads of a warp that have not returned
inline std::vector<Barrier> warps;
inline std::vector<u_int64_t> lanes;
inline Barrier block;
inline unsigned n_alive, n_threads, current;
inline jmp_buf scheduler;
inline void (*entry)(void *);
inline void *entry_data;

// Jumps instead of swapcontext(), which asks the system for the mask of signals each time.
__attribute__((noinline)) inline void yield() {
  if (!_setjmp(threads[current].place)) _longjmp(scheduler, 1);
}

// A thread that returns no longer counts: those that wait for it go on.
inline void wait(Barrier &barrier, const unsigned &expected) {
  const unsigned round = barrier.round;
  barrier.arrived++;
  while (barrier.round == round) {
    if (barrier.arrived >= expected) {
      barrier.arrived = 0;
      barrier.round++;
      return;
    }
    yield();
  }
}
inline void wait_for_warp() { wait(warps[current / 32], alive[current / 32]); }

inline void start() {
  for (;;) {
    entry(entry_data);
    threads[current].done = true;
    n_alive--;
    alive[current / 32]--;
    yield();
  }
}

__attribute__((noinline)) inline void resume() {
  if (_setjmp(scheduler)) return;
  Thread &thread = threads[current];
  if (thread.stack) _longjmp(thread.place, 1);
  thread.stack.reset(new char[stack_size]);
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = thread.stack.get();
  context.uc_stack.ss_size = stack_size;
  makecontext(&context, start, 0);
  setcontext(&context);
}

inline void run_block() {
  n_alive = n_threads;
  block = Barrier();
  const unsigned n_warps = (n_threads + 31) / 32;
  warps.assign(n_warps, Barrier());
  alive.assign(n_warps, 32);
  alive.back() = n_threads - 32 * (n_warps - 1);
  lanes.assign(32 * n_warps, 0);
  if (threads.size() < n_threads) threads.resize(n_threads);
  for (unsigned t = 0; t < n_threads; t++) threads[t].done = false;
  // Forwards and backwards in turn: where a barrier is missing, blocks do not agree.
  for (bool backwards = blockIdx.x & 1; n_alive > 0; backwards = !backwards)
    for (unsigned t = 0; t < n_threads; t++) {
      current = backwards ? n_threads - 1 - t : t;
      if (threads[current].done) continue;
      threadIdx.x = current;
      resume();
    }
}

template <class... Types, size_t... I>
void call(void (*kernel)(Types...), void **arguments, std::index_sequence<I...>) {
  kernel(*static_cast<std::decay_t<Types> *>(arguments[I])...);
}

// `launch_<kernel>` of a compiled library: arguments are pointers to the values, as in CUDA.
template <class... Types>
int launch(void (*kernel)(Types...), const unsigned *grid, unsigned n, size_t n_shared,
           void **arguments, size_t n_arguments) {
  if (n_arguments != sizeof...(Types)) return 1;
  auto body = [&] { call(kernel, arguments, std::index_sequence_for<Types...>()); };
  entry = [](void *data) { (*static_cast<decltype(body) *>(data))(); };
  entry_data = &body;
  n_threads = n;
  blockDim.x = n;
  gridDim.x = grid[0], gridDim.y = grid[1], gridDim.z = grid[2];
  for (blockIdx.z = 0; blockIdx.z < grid[2]; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < grid[1]; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < grid[0]; blockIdx.x++) {
        shared.assign((n_shared + 15) / 16, Chunk());
        memset(shared.data(), 0xa5, 16 * shared.size());  // nothing is zero by itself
        run_block();
      }
  return 0;
}
}  // namespace on_cpu

inline void __syncthreads() { on_cpu::wait(on_cpu::block, on_cpu::n_alive); }
inline void __syncwarp(unsigned = 0xffffffffu) { on_cpu::wait_for_warp(); }
inline void __threadfence() {}

template <class Type>
Type __shfl_sync(unsigned, Type value, int lane) {
  static_assert(sizeof(Type) <= 8);
  const unsigned first = on_cpu::current & ~31u;
  memcpy(&on_cpu::lanes[on_cpu::current], &value, sizeof(Type));
  on_cpu::wait_for_warp();
  Type other;
  memcpy(&other, &on_cpu::lanes[first + (lane & 31)], sizeof(Type));
  on_cpu::wait_for_warp();
  return other;
}
template <class Type>
Type __shfl_down_sync(unsigned mask, Type value, unsigned delta) {
  const unsigned lane = (on_cpu::current & 31) + delta;
  return __shfl_sync(mask, value, lane > 31 ? on_cpu::current & 31 : lane);
}
template <class Type>
Type __shfl_up_sync(unsigned mask, Type value, unsigned delta) {
  const int lane = int(on_cpu::current & 31) - int(delta);
  return __shfl_sync(mask, value, lane < 0 ? on_cpu::current & 31 : lane);
}
template <class Type>
Type __shfl_xor_sync(unsigned mask, Type value, int bits) {
  return __shfl_sync(mask, value, (on_cpu::current & 31) ^ bits);
}
inline unsigned __ballot_sync(unsigned, int predicate) {
  const unsigned first = on_cpu::current & ~31u;
  on_cpu::lanes[on_cpu::current] = predicate != 0;
  on_cpu::wait_for_warp();
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32 && first + lane < on_cpu::n_threads; lane++)
    if (!on_cpu::threads[first + lane].done) votes |= unsigned(on_cpu::lanes[first + lane]) << lane;
  on_cpu::wait_for_warp();
  return votes;
}

// Values are added in their own type, where unsigned ones wrap around.
template <class Type>
Type atomicAdd(Type *place, std::common_type_t<Type> value) {
  const Type old = *place;
  *place = old + value;
  return old;
}
template <class Type>
Type atomicMax(Type *place, std::common_type_t<Type> value) {
  const Type old = *place;
  *place = max(old, value);
  return old;
}
template <class Type>
Type atomicMin(Type *place, std::common_type_t<Type> value) {
  const Type old = *place;
  *place = min(old, value);
  return old;
}
template <class Type>
Type atomicOr(Type *place, std::common_type_t<Type> value) {
  const Type old = *place;
  *place = old | value;
  return old;
}

template <class To, class From>
To same_bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To bits;
  memcpy(&bits, &value, sizeof(To));
  return bits;
}
inline long long __double_as_longlong(double x) { return same_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return same_bits<double>(x); }
inline unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return same_bits<float>(x); }
inline int __float_as_int(float x) { return same_bits<int>(x); }
inline float __int_as_float(int x) { return same_bits<float>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
template <class Type>
Type __ldg(const Type *place) {
  return *place;
}
