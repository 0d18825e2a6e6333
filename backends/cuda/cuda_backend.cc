#include "backends/cuda/cuda_backend.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cuda/compile/kernel_compiler.h"
#include "backends/cuda/cuda_program.h"
#include "backends/cuda/cuda_session.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/device/lanes.h"
#include "backends/cuda/kept_graphs.h"
#include "backends/cuda/kernel_table.h"
#include "backends/cuda/libraries/status.h"
#include "backends/cuda/memory/device_pool.h"
#include "backends/cuda/revived_backend.h"
#include "engine/base/mutex.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/op_def.h"

namespace tensord {
namespace {

using cuda::Context;
using cuda::CuAddress;
using cuda::CudaProgram;
using cuda::CudaSession;
using cuda::DevicePool;
using cuda::KeptGraphs;
using cuda::KernelCompiler;
using cuda::Lane;
using cuda::Lanes;

// A context, and the handles of the libraries, took 0.72 GB on an H200.
constexpr int64_t kBytesForLibraries = int64_t{3} << 29;
constexpr char kTensorBytesLimit[] = "cuda.tensor_bytes";

CuAddress AddressOf(const Buffer& buffer) { return reinterpret_cast<CuAddress>(buffer.address()); }

std::string NameOf(const CudaBackendOptions& options) { return absl::StrCat("cuda:", options.ordinal); }

// The backend of one context.
class CudaBackend final : public Backend {
 public:
  CudaBackend(const CudaBackendOptions& options, std::shared_ptr<Context> context, std::shared_ptr<DevicePool> memory)
      : name_(NameOf(options)),
        context_(std::move(context)),
        memory_(std::move(memory)),
        host_memory_(options.host_memory),
        pinned_(options.pinned),
        libraries_(options.libraries),
        cubins_(options.cubins),
        parallel_(options.parallel),
        most_ahead_(options.most_ahead),
        most_division_steps_(options.most_division_steps),
        most_call_products_(options.most_call_products),
        lanes_(context_, options.libraries, options.lanes, pinned_.get()) {
    if (pinned_ != nullptr) pinned_->Add(context_);
  }
  ~CudaBackend() override {
    if (pinned_ != nullptr) pinned_->Remove(*context_);
  }

  absl::string_view kind() const override { return "cuda"; }
  DeviceDescription Describe() const override {
    DeviceDescription description{
        .model = context_->model(), .memory_bytes = memory_->limit_bytes(), .prepares_slowly = true};
    for (cuda::LibraryInfo& library : libraries_->opened()) {
      description.libraries.push_back(
          {.name = std::move(library.name), .version = std::move(library.version), .path = std::move(library.path)});
    }
    return description;
  }
  MemoryStats Memory() const override { return memory_->stats(); }

  absl::Status Supports(const OpDef& op, absl::Span<const DType> operands, DType result) const override {
    return cuda::CheckHasKernel(name_, op, operands, result);
  }
  bool runs_fused() const override { return true; }
  absl::StatusOr<std::unique_ptr<PreparedSession>> Prepare(
      absl::Span<const SegmentInstruction> segments) const override {
    RETURN_IF_ERROR(context_->Enter());
    ASSIGN_OR_RETURN(KernelCompiler* const compiler, Compiler());
    cuda::KernelContext context = {.compiler = compiler, .libraries = libraries_};
    if (most_division_steps_ > 0) context.most_division_steps = most_division_steps_;
    if (most_call_products_ > 0) context.most_call_products = most_call_products_;
    return CudaProgram::Create(segments, context, parallel_, graphs_);
  }
  absl::StatusOr<std::unique_ptr<BackendSession>> OpenSession() override {
    RETURN_IF_ERROR(context_->Enter());
    ASSIGN_OR_RETURN(Lanes::Loan lane, lanes_.Borrow());
    return std::make_unique<CudaSession>(context_, memory_, std::move(lane), most_ahead_);
  }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t size_bytes) override {
    RETURN_IF_ERROR(context_->Enter());
    return memory_->Allocate(size_bytes);
  }
  absl::StatusOr<BufferPtr> Import(const void* bytes, int64_t size_bytes, std::shared_ptr<const void>) override {
    ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> buffer, Allocate(size_bytes));
    RETURN_IF_ERROR(Write(buffer.get(), 0, {static_cast<const char*>(bytes), static_cast<size_t>(size_bytes)}));
    return buffer;
  }
  absl::StatusOr<std::shared_ptr<const void>> Export(BufferPtr buffer) override {
    std::shared_ptr<const void> bytes;
    RETURN_IF_ERROR(ExportAll({&buffer, 1}, {&bytes, 1}));
    return bytes;
  }
  absl::Status ExportAll(absl::Span<const BufferPtr> buffers, absl::Span<std::shared_ptr<const void>> bytes) override {
    std::vector<std::shared_ptr<Buffer>> copies(buffers.size());
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i] == nullptr) continue;
      ASSIGN_OR_RETURN(copies[i], host_memory_->Allocate(buffers[i]->size_bytes()));
    }
    RETURN_IF_ERROR(Move([&](Lane* lane) -> absl::Status {
      for (size_t i = 0; i < buffers.size(); ++i) {
        if (copies[i] == nullptr) continue;
        RETURN_IF_ERROR(
            lane->Download(static_cast<char*>(copies[i]->address()), AddressOf(*buffers[i]), buffers[i]->size_bytes()));
      }
      return lane->Finish();
    }));
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (copies[i] != nullptr) bytes[i] = std::shared_ptr<const void>(copies[i], copies[i]->address());
    }
    return absl::OkStatus();
  }
  absl::Status Write(Buffer* buffer, int64_t offset_bytes, absl::string_view bytes) override {
    if (bytes.empty()) return absl::OkStatus();
    return Move([&](Lane* lane) -> absl::Status {
      RETURN_IF_ERROR(lane->Upload(AddressOf(*buffer) + static_cast<CuAddress>(offset_bytes), bytes.data(),
                                   static_cast<int64_t>(bytes.size())));
      return lane->Finish();
    });
  }
  absl::StatusOr<std::shared_ptr<Buffer>> Copy(const Buffer& buffer) override {
    ASSIGN_OR_RETURN(std::shared_ptr<Buffer> copy, Allocate(buffer.size_bytes()));
    RETURN_IF_ERROR(Move([&](Lane* lane) -> absl::Status {
      RETURN_IF_ERROR(lane->Copy(AddressOf(*copy), AddressOf(buffer), buffer.size_bytes()));
      return lane->Finish();
    }));
    return copy;
  }

 private:
  // Lends a lane to a function, which leaves nothing on its way: buffers that others see are ready.
  absl::Status Move(absl::FunctionRef<absl::Status(Lane*)> move) {
    RETURN_IF_ERROR(context_->Enter());
    ASSIGN_OR_RETURN(const Lanes::Loan lane, lanes_.Borrow());
    return move(lane.get());
  }

  // Opens NVRTC at the first call; its refusal is the program's that asks.
  absl::StatusOr<KernelCompiler*> Compiler() const {
    MutexLock lock(&compiler_mutex_);
    if (compiler_ == nullptr) {
      ASSIGN_OR_RETURN(const cuda::Nvrtc* const nvrtc, libraries_->nvrtc());
      ASSIGN_OR_RETURN(compiler_, KernelCompiler::Create(context_, nvrtc, cubins_));
    }
    return compiler_.get();
  }

  const std::string name_;
  const std::shared_ptr<Context> context_;
  const std::shared_ptr<DevicePool> memory_;
  const std::shared_ptr<HostBufferPool> host_memory_;
  const std::shared_ptr<cuda::PinnedBlocks> pinned_;
  cuda::Libraries* const libraries_;
  const std::shared_ptr<cuda::CubinStore> cubins_;
  const ParallelFor parallel_;
  const std::chrono::nanoseconds most_ahead_;
  const int64_t most_division_steps_;
  const int64_t most_call_products_;
  const std::shared_ptr<KeptGraphs> graphs_ = std::make_shared<KeptGraphs>();
  mutable Mutex compiler_mutex_;
  mutable std::unique_ptr<KernelCompiler> compiler_ ABSL_GUARDED_BY(compiler_mutex_);
  Lanes lanes_;
};

// `options` come back with the bytes that were decided, for the next incarnations.
absl::StatusOr<cuda::Incarnation> Make(CudaBackendOptions* options) {
  ASSIGN_OR_RETURN(std::shared_ptr<Context> context,
                   Context::Create(&options->libraries->driver(), options->ordinal, options->counts));
  RETURN_IF_ERROR(context->Enter());
  if (options->tensor_bytes < 0) {
    ASSIGN_OR_RETURN(const int64_t free_bytes, context->FreeBytes());
    options->tensor_bytes = std::max(free_bytes - kBytesForLibraries, free_bytes / 2);
  }
  ASSIGN_OR_RETURN(
      std::shared_ptr<DevicePool> memory,
      DevicePool::Create(context, {.limit_bytes = options->tensor_bytes, .limit_name = kTensorBytesLimit}));
  auto backend = std::make_unique<CudaBackend>(*options, context, memory);
  return cuda::Incarnation{.context = std::move(context), .memory = std::move(memory), .backend = std::move(backend)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const CudaBackendOptions& options) {
  CudaBackendOptions made = options;
  if (made.cubins == nullptr) made.cubins = cuda::CubinStore::InMemory();
  if (made.counts == nullptr) made.counts = std::make_shared<cuda::DeviceCounts>();
  const auto make = [made, is_first = true]() mutable {
    absl::StatusOr<cuda::Incarnation> incarnation = Make(&made);
    if (!std::exchange(is_first, false)) ++(incarnation.ok() ? made.counts->revived : made.counts->failed_revivals);
    return incarnation;
  };
  absl::StatusOr<std::unique_ptr<Backend>> backend = cuda::MakeRevivedBackend(NameOf(options), make, options.clock);
  if (backend.ok() || absl::IsUnavailable(backend.status())) return backend;
  return cuda::DeviceIsNotThere(options.ordinal, backend.status());
}

}  // namespace tensord
