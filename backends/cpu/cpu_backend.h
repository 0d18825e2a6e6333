#ifndef TENSORD_BACKENDS_CPU_CPU_BACKEND_H_
#define TENSORD_BACKENDS_CPU_CPU_BACKEND_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "backends/cpu/kernel/family_kernel.h"
#include "engine/exec/backend/backend.h"
#include "engine/exec/memory/host_buffer_pool.h"

namespace tensord {

namespace cpu {
class FftTransforms;
class ThreadPool;
}  // namespace cpu

// A use of the processor by the backend that changes no bits of any result.
enum class CpuUse : uint8_t {
  kOff,
  kAuto,  // where it pays
  kOn,    // wherever it can be done
};
// "off" and "on"; kAuto for any other name.
CpuUse CpuUseNamed(absl::string_view name);

// Returns the memory that tensors may take: 80 % of the memory of the machine, or of the limit of control groups.
int64_t MostCpuTensorBytes();

struct CpuBackendOptions {
  // The pool that kernels share; it outlives the backend. Null: a pool of its own, of `threads` threads.
  cpu::ThreadPool* pool = nullptr;
  // Tables that kernels of Fourier transforms share. They outlive the backend; null: some of its own.
  cpu::FftTransforms* fft_transforms = nullptr;
  int threads = 0;  // the caller included; 0: one a core
  // Memory for tensors. Null: a pool of its own, of MostCpuTensorBytes, which keeps so many free bytes for reuse.
  std::shared_ptr<HostBufferPool> memory;
  int64_t pool_bytes = int64_t{1} << 30;
  CpuUse jit = CpuUse::kAuto;        // whether fused kernels become machine code
  CpuUse epilogues = CpuUse::kAuto;  // whether products run elementwise kernels beside them, block by block
  // The bytes of tensors that pass in one block between segments that run together. 0: as many as the second-level
  // cache holds, for tensors that would leave that cache; more: wherever segments can run together; negative: nowhere.
  int64_t chain_block_bytes = 0;
  std::vector<std::string> disabled_joins;  // ways to run segments together that are left out: names of JoinWays
  // The interval at which each thread of a run asks whether the run is still wanted; 0: at each opportunity, for tests.
  std::chrono::nanoseconds ask_every = std::chrono::milliseconds(1);
  // Kernels of families that are not built in. The tables must outlive the backend.
  std::vector<absl::Span<const cpu::FamilyKernel>> family_kernels;
};

// Returns the native CPU: Highway kernels and OpenBLAS under one pool of threads. Buffers are host memory. Sets
// OpenBLAS to one thread for the whole process; the pool splits the work.
std::unique_ptr<Backend> MakeCpuBackend(const CpuBackendOptions& options);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CPU_CPU_BACKEND_H_
