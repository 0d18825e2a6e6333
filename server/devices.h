#ifndef TENSORD_SERVER_DEVICES_H_
#define TENSORD_SERVER_DEVICES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/exec/backend/backend.h"
#include "engine/exec/backend/parallel_for.h"
#include "engine/exec/memory/host_buffer_pool.h"
#include "engine/runtime/devices/executor_pool.h"
#include "server/config/server_config.pb.h"
#include "server/observe/logs/log.h"
#include "server/observe/metrics/collected_metrics.h"
#include "server/server_families.h"

namespace tensord::cpu {
class FftTransforms;
class ThreadPool;
}  // namespace tensord::cpu
namespace tensord::cuda {
class CubinStore;
struct DeviceCounts;
class Libraries;
class PinnedBlocks;
}  // namespace tensord::cuda

namespace tensord::server {

// The bytes that all tensors on the CPU may take, which is no setting, and their name in refusals.
inline constexpr char kTensorBytesLimit[] = "cpu.tensor_bytes";
int64_t MostTensorBytes();

// The bytes that all tensors on a CUDA device may take, which is no setting either.
inline constexpr char kCudaTensorBytesLimit[] = "cuda.tensor_bytes";

// Checks that the processor has the instruction set of cpu.isa, that there are the ways of cpu.disabled_joins, and that
// cuda.libraries is a folder. INVALID_ARGUMENT, which names those that there are, where not.
absl::Status CheckDeviceSettings(const ServerConfig& config);

// Keeps the process to cpu.isa, from before the first kernel is chosen.
absl::Status UseInstructionSet(const ServerConfig& config);

// Begins the program again if OpenBLAS's kernels are beyond cpu.isa, or far below the processor: it reads its
// environment before main. Once; never if OPENBLAS_CORETYPE is set, or it cannot be done: the server's log then has a
// warning.
void BeginAgainForBlas(const ServerConfig& config, char** argv);

// Returns a line for each CUDA device of the configuration and for each of NVIDIA's libraries, also for those that are
// missing. Opens all of them, but takes nothing of a device. UNAVAILABLE if a device is not there.
absl::StatusOr<std::vector<std::string>> DescribeCudaDevices(const ServerConfig& config);

// Returns the families of a server, with their plugins audited. INVALID_ARGUMENT if a plugin cannot be used.
absl::StatusOr<std::unique_ptr<const ServerFamilies>> LoadFamilies(const ServerConfig& config);

// Backends that tests put in the place of a server's own. Where a function is empty, the server's own is taken.
struct OtherBackends {
  // Returns the backend to stand in the place of the CPU's, which it owns: one with memory that the host cannot read.
  std::function<std::unique_ptr<Backend>(std::unique_ptr<Backend> cpu)> in_place_of_cpu;
  // Makes the backend of the CUDA device of that number. Its kind is "cuda".
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(int ordinal)> cuda;
};

// The devices of a server, their backends, and what these share. The implementation is the one file of the server that
// names a backend. Thread-safe.
class Devices {
 public:
  // Makes those of the configuration, whose instruction set is in use. Tells the log where OpenBLAS is slower or newer
  // than it should be. UNAVAILABLE if a device is not there.
  static absl::StatusOr<std::unique_ptr<Devices>> Create(const ServerConfig& config, const ServerFamilies& families,
                                                         Log* log, const OtherBackends& others = {});
  ~Devices();
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  // Returns the configuration with the settings decided that depend on the devices.
  ServerConfig Decided(ServerConfig config) const;
  // Adds an executor for each, which the devices must outlive.
  void AddExecutors(const ServerConfig& config, ExecutorPool* executors) const;

  // Returns the names of the devices, the default's first.
  const std::vector<std::string>& names() const { return names_; }
  // Returns the memory of tensors on the CPU.
  const std::shared_ptr<HostBufferPool>& memory() const { return memory_; }
  // Returns the memory of what calls send, and of what comes from other devices for them to send back.
  const std::shared_ptr<HostBufferPool>& payloads() const { return payloads_; }
  // The CPU backend's threads, for large copies.
  ParallelFor parallel_for() const;
  CollectedMetrics::Tables fft_tables() const;
  CollectedMetrics::Cuda cuda() const;
  // Returns the bytes that tensors may take on the smallest CUDA device; 0: there is none.
  int64_t cuda_tensor_bytes() const { return cuda_bytes_; }

 private:
  Devices();
  std::unique_ptr<Backend> MakeCpu(const ServerConfig& config, const ServerFamilies& families,
                                   const OtherBackends& others) const;
  absl::StatusOr<std::unique_ptr<Backend>> MakeCuda(const ServerConfig& config, int ordinal, Log* log,
                                                    const OtherBackends& others);
  void MakePayloads(const ServerConfig& config, std::shared_ptr<MemoryBudget> budget, Log* log);
  absl::Status OpenCuda(const ServerConfig& config, int ordinal, Log* log);
  void NoteCudaBytes(int64_t bytes);

  std::unique_ptr<cpu::ThreadPool> pool_;
  std::unique_ptr<cpu::FftTransforms> fft_transforms_;
  std::shared_ptr<HostBufferPool> memory_;
  std::shared_ptr<cuda::PinnedBlocks> pinned_;  // of the payloads; null: there is no CUDA device
  std::shared_ptr<HostBufferPool> payloads_;
  std::unique_ptr<cuda::Libraries> cuda_libraries_;                         // of all CUDA devices; null: there is none
  std::shared_ptr<cuda::CubinStore> cubins_;                                // likewise
  std::map<std::string, std::shared_ptr<cuda::DeviceCounts>> cuda_counts_;  // by device
  int64_t cuda_bytes_ = 0;                          // memory of the smallest CUDA device; 0: there is none
  std::vector<std::unique_ptr<Backend>> backends_;  // by name
  std::vector<std::string> names_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_DEVICES_H_
