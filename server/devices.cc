#include "server/devices.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/fft/transforms.h"
#include "backends/cpu/joins/ways.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/machine/blas.h"
#include "backends/cpu/machine/instruction_set.h"
#include "backends/cpu/machine/thread_pool.h"
#include "backends/cuda/compile/cubin_store.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/device/device_counts.h"
#include "backends/cuda/device/pinned_blocks.h"
#include "backends/cuda/libraries/libraries.h"
#include "backends/cuda/libraries/status.h"
#include "engine/base/status_macros.h"
#include "engine/base/thread_niceness.h"
#include "engine/families/family_plugin.h"
#include "server/config/device_names.h"
#include "server/part_settings.h"

namespace tensord::server {
namespace {

// Tenths of a device's memory that programs and tensors may take: the rest is for sizes that no plan knows.
constexpr int64_t kPlannedTenths = 9;

DeviceExecutor::Options ExecutorOf(const ServerConfig& config, absl::string_view kind) {
  const DeviceExecutor::Bounds bounds = DeviceBoundsOf(config, kind);
  return {.workers = kind == kCudaKind ? config.cuda().executors() : config.cpu().executors(),
          .max_queued = bounds.max_queued,
          .max_queued_per_tenant = bounds.max_queued_per_tenant,
          .max_wait = bounds.max_wait,
          .ageing = bounds.ageing,
          .memory_bytes = bounds.memory_bytes,
          .niceness = config.cpu().niceness()};
}

absl::Span<const cpu::FamilyKernel> CpuTableOf(const DeviceKernels& kernels) {
  return absl::MakeConstSpan(static_cast<const cpu::FamilyKernel*>(kernels.table), kernels.count);
}

std::vector<absl::Span<const cpu::FamilyKernel>> CpuKernelsOf(const ServerFamilies& families) {
  std::vector<absl::Span<const cpu::FamilyKernel>> tables;
  for (const DeviceKernels& kernels : families.KernelsOf("cpu")) tables.push_back(CpuTableOf(kernels));
  return tables;
}

std::vector<std::string> DisabledJoinsOf(const ServerConfig& config) {
  return {config.cpu().disabled_joins().begin(), config.cpu().disabled_joins().end()};
}

// Checks that the CPU, which every server has, can run each op of the plugin.
absl::Status AuditCpuKernels(const FamilyPlugin& plugin) {
  absl::Span<const cpu::FamilyKernel> table;
  for (const DeviceKernels& kernels : absl::MakeConstSpan(plugin.kernels, plugin.num_kernels)) {
    if (absl::string_view(kernels.device_kind) == "cpu") table = CpuTableOf(kernels);
  }
  return cpu::AuditFamilyKernels(table, absl::MakeConstSpan(plugin.ops, plugin.num_ops));
}

// The threads are as nice as the thread that makes them.
std::unique_ptr<cpu::ThreadPool> MakeNicerPool(int threads, int niceness) {
  std::unique_ptr<cpu::ThreadPool> pool;
  std::thread([&] {
    if (niceness > 0) LowerThisThread(niceness);
    pool = cpu::MakeThreadPool(threads);
  }).join();
  return pool;
}

// Of the memory for tensors, the part that may be pinned: the system can take nothing of that back.
constexpr int64_t kPinnedShare = 4;

// A run holds one until it is over; these are for tensors that come and go meanwhile.
constexpr int kLanesForTensors = 2;

absl::StatusOr<std::unique_ptr<cuda::Libraries>> OpenLibraries(const ServerConfig& config, int ordinal) {
  absl::StatusOr<std::unique_ptr<cuda::Libraries>> libraries =
      cuda::Libraries::Open(cuda::PathsOf(config.cuda().libraries()));
  if (!libraries.ok()) return cuda::DeviceIsNotThere(ordinal, libraries.status());
  return libraries;
}

std::string LibraryText(absl::string_view name, absl::string_view version, absl::string_view path) {
  return absl::StrCat(name, " ", version, ", ", path);
}

void TellOfLibraries(cuda::Libraries* libraries, absl::Span<const absl::Status> refusals, Log* log) {
  for (const cuda::LibraryInfo& library : libraries->opened()) {
    log->Event(LogLevel::kInfo, "cuda library", LibraryText(library.name, library.version, library.path));
  }
  for (const absl::Status& refusal : refusals) {
    log->Event(LogLevel::kWarning, "cuda library missing", std::string(refusal.message()));
  }
}

// Nothing: "auto".
std::optional<CpuIsa> IsaOf(const ServerConfig& config) {
  for (const CpuIsa isa : MachineCpuIsas()) {
    if (config.cpu().isa() == Name(isa)) return isa;
  }
  return std::nullopt;
}

void WarnOfBlas(const ServerConfig& config, Log* log) {
  const std::optional<CpuIsa> isa = IsaOf(config);
  if (const std::string within = isa.has_value() ? cpu::BlasCoreWithin(*isa) : ""; !within.empty()) {
    log->Event(LogLevel::kWarning, "blas beyond isa",
               absl::StrCat("OpenBLAS runs kernels of newer processors than cpu.isa, which is ", config.cpu().isa(),
                            ": start the server with OPENBLAS_CORETYPE=", within, " in its environment"));
  }
  const std::optional<cpu::OutdatedBlasCore> outdated = cpu::FindOutdatedBlasCore();
  if (!outdated.has_value()) return;
  log->Event(LogLevel::kWarning, "outdated blas",
             absl::StrCat("OpenBLAS takes this processor for one of the kind ", outdated->core,
                          ", whose products and factorizations are several times slower: start the server with "
                          "OPENBLAS_CORETYPE=",
                          outdated->better, " in its environment"));
}

}  // namespace

int64_t MostTensorBytes() { return MostCpuTensorBytes(); }

absl::Status CheckDeviceSettings(const ServerConfig& config) {
  const absl::Status isa = CheckCpuIsa(config.cpu().isa());
  if (!isa.ok()) return absl::InvalidArgumentError(absl::StrCat("setting cpu.isa: ", isa.message()));
  const absl::Status joins = cpu::CheckJoinNames(DisabledJoinsOf(config));
  if (!joins.ok()) return absl::InvalidArgumentError(absl::StrCat("setting cpu.disabled_joins: ", joins.message()));
  const std::string& libraries = config.cuda().libraries();
  std::error_code error;
  if (libraries.empty() || std::filesystem::is_directory(libraries, error)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("setting cuda.libraries: ", libraries, " is no folder"));
}

absl::StatusOr<std::vector<std::string>> DescribeCudaDevices(const ServerConfig& config) {
  ASSIGN_OR_RETURN(const std::vector<DeviceName> names, DevicesOf(config));
  std::unique_ptr<cuda::Libraries> libraries;
  std::vector<std::string> lines;
  for (const DeviceName& name : names) {
    if (name.kind != kCudaKind) continue;
    if (libraries == nullptr) {
      ASSIGN_OR_RETURN(libraries, OpenLibraries(config, name.ordinal));
    }
    ASSIGN_OR_RETURN(const std::string model, cuda::Context::ModelOf(&libraries->driver(), name.ordinal));
    lines.push_back(absl::StrCat("device ", name.full(), ": ", model));
  }
  if (libraries == nullptr) return lines;
  const std::vector<absl::Status> refusals = libraries->OpenAll();
  for (const cuda::LibraryInfo& library : libraries->opened()) {
    lines.push_back(absl::StrCat("library ", LibraryText(library.name, library.version, library.path)));
  }
  for (const absl::Status& refusal : refusals) lines.push_back(absl::StrCat("library missing: ", refusal.message()));
  return lines;
}

absl::Status UseInstructionSet(const ServerConfig& config) { return UseCpuIsa(config.cpu().isa()); }

void BeginAgainForBlas(const ServerConfig& config, char** argv) {
  cpu::BeginAgainWithBlasCore(cpu::FittingBlasCore(IsaOf(config)), argv);
}

absl::StatusOr<std::unique_ptr<const ServerFamilies>> LoadFamilies(const ServerConfig& config) {
  return ServerFamilies::Load(config, AuditCpuKernels);
}

Devices::Devices() = default;
Devices::~Devices() = default;

absl::StatusOr<std::unique_ptr<Devices>> Devices::Create(const ServerConfig& config, const ServerFamilies& families,
                                                         Log* log, const OtherBackends& others) {
  ASSIGN_OR_RETURN(const std::vector<DeviceName> names, DevicesOf(config));
  RETURN_IF_ERROR(cpu::CheckBlasCore());
  WarnOfBlas(config, log);
  std::unique_ptr<Devices> devices(new Devices());
  devices->pool_ = MakeNicerPool(config.cpu().threads(), config.cpu().niceness());
  devices->fft_transforms_ = std::make_unique<cpu::FftTransforms>(config.cpu().fft_table_bytes());
  const auto host_budget = std::make_shared<MemoryBudget>(MostCpuTensorBytes());
  devices->memory_ = HostBufferPool::Create(host_budget, config.cpu().pool_bytes(), kTensorBytesLimit);
  const bool has_cuda =
      std::any_of(names.begin(), names.end(), [](const DeviceName& name) { return name.kind == kCudaKind; });
  devices->MakePayloads(config, has_cuda ? host_budget : nullptr, log);
  for (const DeviceName& name : names) {
    ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend, name.kind == kCudaKind
                                                           ? devices->MakeCuda(config, name.ordinal, log, others)
                                                           : devices->MakeCpu(config, families, others));
    if (name.kind == kCudaKind) devices->NoteCudaBytes(backend->Describe().memory_bytes);
    devices->backends_.push_back(std::move(backend));
    devices->names_.push_back(name.full());
  }
  return devices;
}

// Without a GPU the gate alone bounds the bytes: those of requests. With one there are results too, and the budget is
// that of all tensors of the host.
void Devices::MakePayloads(const ServerConfig& config, std::shared_ptr<MemoryBudget> budget, Log* log) {
  const int64_t kept = config.receive().pool_bytes();
  if (budget == nullptr) {
    payloads_ = HostBufferPool::Create(std::numeric_limits<int64_t>::max(), kept);
    return;
  }
  pinned_ = std::make_shared<cuda::PinnedBlocks>(cuda::PinnedBlocks::Options{
      .most_bytes = MostCpuTensorBytes() / kPinnedShare, .on_first_refusal = [log](const absl::Status& refusal) {
        log->Event(LogLevel::kWarning, "memory not pinned",
                   absl::StrCat("memory of a payload could not be pinned, so that it is copied once more on its way to "
                                "a GPU or from it; tensord_cuda_pinnings_total counts these: ",
                                refusal.message()));
      }});
  payloads_ = HostBufferPool::Create(std::move(budget), kept, kTensorBytesLimit, pinned_);
}

// The parts that all CUDA devices share.
absl::Status Devices::OpenCuda(const ServerConfig& config, int ordinal, Log* log) {
  ASSIGN_OR_RETURN(cuda_libraries_, OpenLibraries(config, ordinal));
  const std::vector<absl::Status> refusals =
      config.cuda().warm() ? cuda_libraries_->OpenAll() : std::vector<absl::Status>();
  TellOfLibraries(cuda_libraries_.get(), refusals, log);
  ASSIGN_OR_RETURN(cubins_, cuda::CubinStore::Open({.folder = config.program_cache().disk_path(),
                                                    .disk_bytes = config.cuda().kernel_disk_bytes()}));
  if (cubins_->opened_with() != 0) {
    log->Event(LogLevel::kWarning, "program folder closed",
               absl::StrCat("the folder of programs and kernels, ", config.program_cache().disk_path(),
                            ", was open to others; it is 0700 now"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Backend>> Devices::MakeCuda(const ServerConfig& config, int ordinal, Log* log,
                                                           const OtherBackends& others) {
  if (others.cuda != nullptr) return others.cuda(ordinal);
  if (cuda_libraries_ == nullptr) RETURN_IF_ERROR(OpenCuda(config, ordinal, log));
  const auto counts = std::make_shared<cuda::DeviceCounts>();
  cuda_counts_[DeviceName{.kind = kCudaKind, .ordinal = ordinal}.full()] = counts;
  return MakeCudaBackend({.libraries = cuda_libraries_.get(),
                          .ordinal = ordinal,
                          .lanes = config.cuda().executors() + kLanesForTensors,
                          .host_memory = payloads_,
                          .pinned = pinned_,
                          .cubins = cubins_,
                          .parallel = parallel_for(),
                          .counts = counts});
}

std::unique_ptr<Backend> Devices::MakeCpu(const ServerConfig& config, const ServerFamilies& families,
                                          const OtherBackends& others) const {
  std::unique_ptr<Backend> backend = MakeCpuBackend({.pool = pool_.get(),
                                                     .fft_transforms = fft_transforms_.get(),
                                                     .memory = memory_,
                                                     .jit = CpuUseNamed(config.cpu().jit()),
                                                     .epilogues = CpuUseNamed(config.cpu().epilogues()),
                                                     .chain_block_bytes = config.cpu().chain_block_bytes(),
                                                     .disabled_joins = DisabledJoinsOf(config),
                                                     .family_kernels = CpuKernelsOf(families)});
  return others.in_place_of_cpu == nullptr ? std::move(backend) : others.in_place_of_cpu(std::move(backend));
}

void Devices::NoteCudaBytes(int64_t bytes) { cuda_bytes_ = cuda_bytes_ == 0 ? bytes : std::min(cuda_bytes_, bytes); }

ServerConfig Devices::Decided(ServerConfig config) const {
  if (config.cuda().memory_bytes() < 0 && cuda_bytes_ > 0) {
    config.mutable_cuda()->set_memory_bytes(std::max<int64_t>(1, cuda_bytes_ / 10 * kPlannedTenths));
  }
  return config;
}

void Devices::AddExecutors(const ServerConfig& config, ExecutorPool* executors) const {
  for (size_t i = 0; i < backends_.size(); ++i) {
    executors->Add(
        std::make_unique<DeviceExecutor>(names_[i], backends_[i].get(), ExecutorOf(config, backends_[i]->kind())));
  }
}

ParallelFor Devices::parallel_for() const {
  return [pool = pool_.get()](int64_t tasks, absl::FunctionRef<void(int64_t)> fn) { pool->ParallelFor(tasks, fn); };
}

CollectedMetrics::Tables Devices::fft_tables() const {
  const cpu::FftTransforms::Stats stats = fft_transforms_->stats();
  return {.bytes = stats.bytes, .hits = stats.hits, .misses = stats.misses, .evictions = stats.evictions};
}

CollectedMetrics::Cuda Devices::cuda() const {
  CollectedMetrics::Cuda cuda;
  for (const auto& [device, counts] : cuda_counts_) {
    cuda.devices[device] = {
        .copied = {{"to", counts->to_device_bytes.load()},
                   {"from", counts->from_device_bytes.load()},
                   {"within", counts->within_bytes.load()}},
        .direct = {{"to", counts->direct_to_bytes.load()}, {"from", counts->direct_from_bytes.load()}},
        .contexts = {{"lost", counts->lost.load()},
                     {"revived", counts->revived.load()},
                     {"failed", counts->failed_revivals.load()}},
        .graphs = {{"captured", counts->captured_graphs.load()},
                   {"replayed", counts->launched_graphs.load()},
                   {"failed", counts->failed_captures.load()}},
        .kept_graphs = counts->graphs.load()};
  }
  const cuda::PinnedBlocks::Stats pinned = pinned_ == nullptr ? cuda::PinnedBlocks::Stats() : pinned_->stats();
  cuda.pinnings = {{"pinned", pinned.pinned}, {"refused", pinned.refused}};
  cuda.pinned_bytes = pinned.bytes;
  const cuda::CubinStore::Stats stats = cubins_ == nullptr ? cuda::CubinStore::Stats() : cubins_->stats();
  cuda.kernels = {{"memory", stats.from_memory},
                  {"disk", stats.from_disk},
                  {"compiled", stats.compiled},
                  {"refused", stats.refused}};
  cuda.kernel_errors = {{"damaged", stats.damaged}, {"write", stats.write_errors}};
  cuda.kernel_bytes = {{"memory", stats.memory_bytes}, {"disk", stats.disk_bytes}};
  cuda.compiling = stats.compiling;
  return cuda;
}

}  // namespace tensord::server
