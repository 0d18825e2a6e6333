#ifndef TENSORD_TESTS_BENCH_CUDA_CUDA_WORKLOADS_H_
#define TENSORD_TESTS_BENCH_CUDA_CUDA_WORKLOADS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tensord {

// A graph that one GPU is measured by. peers.py has the same under its name.
struct CudaWorkload {
  std::string name;
  std::string text;          // the graph, of the core vocabulary and the families
  int64_t bytes = 0;         // that it must read and write at least; 0: it is measured by its operations
  double flops = 0;          // likewise
  bool is_chain = false;     // small kernels in a row: measured by the time of a run
  bool is_definite = false;  // its argument is a batch of positive definite matrices
};

// Returns all of them. Arrays have a `divide`-th of their usual elements: 1 for a GPU.
std::vector<CudaWorkload> CudaWorkloads(int64_t divide);

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_CUDA_CUDA_WORKLOADS_H_
