#include "backends/cpu/cpu_backend.h"

#include <chrono>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/cpu_program.h"
#include "backends/cpu/fft/transforms.h"
#include "backends/cpu/joins/context.h"
#include "backends/cpu/joins/ways.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/machine/blas.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/control_group.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/exec/memory/host_buffer_pool.h"

namespace tensord {
namespace {

using cpu::ThreadPool;

std::string ProcessorModel() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  }
  return "CPU";
}

cpu::JitOptions JitOptionsOf(CpuUse jit) {
  using Use = cpu::JitOptions::Use;
  return {.use = jit == CpuUse::kOff ? Use::kNever : jit == CpuUse::kOn ? Use::kAlways : Use::kWhereItPays};
}

cpu::EpilogueUse EpilogueUseOf(CpuUse use) {
  using Use = cpu::EpilogueUse;
  return use == CpuUse::kOff ? Use::kNever : use == CpuUse::kOn ? Use::kAlways : Use::kWhereItPays;
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuBackendOptions& options)
      : model_(ProcessorModel()),
        memory_bytes_(UsableMemoryBytes()),
        memory_(options.memory != nullptr ? options.memory
                                          : HostBufferPool::Create(MostCpuTensorBytes(), options.pool_bytes)),
        jit_(JitOptionsOf(options.jit)),
        epilogues_(EpilogueUseOf(options.epilogues)),
        chain_limits_(options.chain_block_bytes == 0 ? cpu::MachineChainLimits()
                                                     : cpu::ChainLimits{.block_bytes = options.chain_block_bytes}),
        left_out_(cpu::JoinWaysNamed(options.disabled_joins)),
        ask_every_(options.ask_every),
        own_pool_(options.pool == nullptr ? cpu::MakeThreadPool(options.threads) : nullptr),
        pool_(options.pool == nullptr ? *own_pool_ : *options.pool),
        own_fft_transforms_(options.fft_transforms == nullptr ? std::make_unique<cpu::FftTransforms>() : nullptr),
        fft_transforms_(options.fft_transforms == nullptr ? *own_fft_transforms_ : *options.fft_transforms),
        kernels_(jit_, fft_transforms_, options.family_kernels) {
    cpu::UseSerialBlas();
  }

  absl::string_view kind() const override { return "cpu"; }
  DeviceDescription Describe() const override {
    return {
        .model = model_, .memory_bytes = memory_bytes_, .computes_on_caller = true, .computes_in_host_memory = true};
  }

  MemoryStats Memory() const override { return memory_->stats(); }

  absl::Status Supports(const OpDef& op, absl::Span<const DType> operands, DType result) const override {
    const DType first = operands.empty() ? result : operands[0];
    if (kernels_.Has(op) && op.dtypes.Contains(first)) return absl::OkStatus();
    return Refuse(Refusal::kUnsupportedOnDevice,
                  absl::StrCat("the device cpu cannot run ", op.name, " on ", Name(first)));
  }

  bool runs_fused() const override { return true; }

  absl::StatusOr<std::unique_ptr<PreparedSession>> Prepare(
      absl::Span<const SegmentInstruction> segments) const override {
    const auto make = [this](const BoundInstruction& bound, absl::Span<const int32_t> num_readers) {
      return kernels_.Make(bound, num_readers);
    };
    const cpu::JoinContext context = {.make = make,
                                      .fft_transforms = fft_transforms_,
                                      .jit = jit_,
                                      .epilogues = epilogues_,
                                      .limits = chain_limits_,
                                      .threads = pool_.threads()};
    auto program = std::make_unique<cpu::CpuProgram>(left_out_);
    cpu::Joiner joiner(segments, context, left_out_);
    while (!joiner.is_done()) {
      RETURN_IF_ERROR(CheckStopped());  // a kernel may take milliseconds to make
      const absl::Span<const SegmentInstruction> rest = joiner.rest();
      ASSIGN_OR_RETURN(cpu::Joiner::Joined joined, joiner.Next());
      program->Append(std::move(joined), rest);
    }
    return program;
  }

  absl::StatusOr<std::unique_ptr<BackendSession>> OpenSession() override {
    return std::make_unique<cpu::CpuSession>(&pool_, memory_.get(), ask_every_);
  }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t size_bytes) override {
    return memory_->Allocate(size_bytes);
  }

  absl::StatusOr<BufferPtr> Import(const void* bytes, int64_t size_bytes, std::shared_ptr<const void> owner) override {
    // Kernels load elements of up to 8 bytes (complex numbers are two), so that much alignment is taken as it is.
    const bool aligned = reinterpret_cast<uintptr_t>(bytes) % 8 == 0;
    if (aligned || size_bytes == 0) {
      return std::make_shared<const Buffer>(const_cast<void*>(bytes), size_bytes,
                                            [owner = std::move(owner)](void*, int64_t) {});
    }
    ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> copy, memory_->Allocate(size_bytes));
    std::memcpy(copy->address(), bytes, static_cast<size_t>(size_bytes));
    return copy;
  }

  absl::StatusOr<std::shared_ptr<const void>> Export(BufferPtr buffer) override {
    const void* const address = buffer->address();
    return std::shared_ptr<const void>(std::move(buffer), address);
  }

  absl::Status Write(Buffer* buffer, int64_t offset_bytes, absl::string_view bytes) override {
    if (!bytes.empty()) std::memcpy(static_cast<char*>(buffer->address()) + offset_bytes, bytes.data(), bytes.size());
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<Buffer>> Copy(const Buffer& buffer) override {
    const int64_t size_bytes = buffer.size_bytes();
    ASSIGN_OR_RETURN(std::shared_ptr<Buffer> copy, memory_->Allocate(size_bytes));
    if (size_bytes > 0) std::memcpy(copy->address(), buffer.address(), static_cast<size_t>(size_bytes));
    return copy;
  }

 private:
  const std::string model_;
  const int64_t memory_bytes_;
  const std::shared_ptr<HostBufferPool> memory_;
  const cpu::JitOptions jit_;
  const cpu::EpilogueUse epilogues_;
  const cpu::ChainLimits chain_limits_;
  const cpu::JoinWaySet left_out_;
  const std::chrono::nanoseconds ask_every_;
  const std::unique_ptr<ThreadPool> own_pool_;
  ThreadPool& pool_;
  const std::unique_ptr<cpu::FftTransforms> own_fft_transforms_;
  cpu::FftTransforms& fft_transforms_;
  const cpu::KernelFactory kernels_;
};

}  // namespace

CpuUse CpuUseNamed(absl::string_view name) {
  return name == "off" ? CpuUse::kOff : name == "on" ? CpuUse::kOn : CpuUse::kAuto;
}

int64_t MostCpuTensorBytes() { return UsableMemoryBytes() / 5 * 4; }

std::unique_ptr<Backend> MakeCpuBackend(const CpuBackendOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace tensord
