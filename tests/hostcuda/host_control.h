#ifndef TENSORD_TESTS_HOSTCUDA_HOST_CONTROL_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_CONTROL_H_

namespace tensord::cuda {

// The sums over the launches of checked kernels, of their first four blocks.
struct HostCounts {
  long launches;
  long global_requests, global_sectors;  // a warp's access to global memory, and the 32-byte sectors that it touches
  long shared_requests, shared_turns;    // the same to shared memory, and the turns that its banks take
};

// The functions by which tests set and ask the host CUDA device. libtensord_host_cuda.so exports them beside NVIDIA's
// functions; a table of them is made as the tables of backends/cuda/abi are. Each as F(name, result, (arguments)).
//
//   hostCudaSet         a setting (README.md), by its name without HOST_CUDA_, for what happens from now on
//   hostCudaFail        the n-th call of a function from now on fails with `result`, or each if n is 0; a result of 0
//                       means its library's usual error; one call of each function can be named, and no name takes all
//                       back
//   hostCudaCalls       calls of a function so far
//   hostCudaBytes       bytes that calls of a copy's function were asked to move so far
//   hostCudaLive...     what was not freed: device memory (allocations, reservations and mappings), pinned memory,
//                       streams with events, graphs and modules (Handles), and what libraries keep (Objects)
//   hostCudaOverruns    allocations of device memory that something had written past, when they were freed
//   hostCudaProblems    accesses of checked kernels that were wrong
//   hostCudaTakeCounts  the counts since the last call
//   hostCudaCompilations  runs of the host's compiler by this process so far
#define TENSORD_HOST_CUDA_CONTROLS(F)                               \
  F(hostCudaSet, void, (const char* name, const char* value))       \
  F(hostCudaFail, void, (const char* function, long n, int result)) \
  F(hostCudaCalls, long, (const char* function))                    \
  F(hostCudaBytes, long, (const char* function))                    \
  F(hostCudaLiveMemory, long, ())                                   \
  F(hostCudaLivePinned, long, ())                                   \
  F(hostCudaLiveHandles, long, ())                                  \
  F(hostCudaLiveObjects, long, ())                                  \
  F(hostCudaOverruns, long, ())                                     \
  F(hostCudaProblems, long, ())                                     \
  F(hostCudaTakeCounts, void, (HostCounts * counts))                \
  F(hostCudaCompilations, long, ())

}  // namespace tensord::cuda

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_CONTROL_H_
