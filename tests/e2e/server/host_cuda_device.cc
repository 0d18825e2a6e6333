#include "tests/e2e/server/host_cuda_device.h"

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "backends/cuda/compile/cubin_store.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/libraries/libraries.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

constexpr char kFolder[] = "TENSORD_TEST_CUDA";

// A backend that calls itself a CPU.
class CalledCpu final : public Backend {
 public:
  explicit CalledCpu(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}

  absl::string_view kind() const override { return "cpu"; }
  DeviceDescription Describe() const override { return backend_->Describe(); }
  MemoryStats Memory() const override { return backend_->Memory(); }
  absl::Status Supports(const OpDef& op, absl::Span<const DType> operands, DType result) const override {
    return backend_->Supports(op, operands, result);
  }
  bool runs_fused() const override { return backend_->runs_fused(); }
  absl::StatusOr<std::unique_ptr<PreparedSession>> Prepare(
      absl::Span<const SegmentInstruction> segments) const override {
    return backend_->Prepare(segments);
  }
  absl::StatusOr<std::unique_ptr<BackendSession>> OpenSession() override { return backend_->OpenSession(); }
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t size_bytes) override {
    return backend_->Allocate(size_bytes);
  }
  absl::StatusOr<BufferPtr> Import(const void* bytes, int64_t size_bytes, std::shared_ptr<const void> owner) override {
    return backend_->Import(bytes, size_bytes, std::move(owner));
  }
  absl::StatusOr<std::shared_ptr<const void>> Export(BufferPtr buffer) override {
    return backend_->Export(std::move(buffer));
  }
  absl::Status ExportAll(absl::Span<const BufferPtr> buffers, absl::Span<std::shared_ptr<const void>> bytes) override {
    return backend_->ExportAll(buffers, bytes);
  }
  absl::Status Write(Buffer* buffer, int64_t offset_bytes, absl::string_view bytes) override {
    return backend_->Write(buffer, offset_bytes, bytes);
  }
  absl::StatusOr<std::shared_ptr<Buffer>> Copy(const Buffer& buffer) override { return backend_->Copy(buffer); }

 private:
  const std::unique_ptr<Backend> backend_;
};

// Returns the value, without which no test can go on.
template <typename T>
T ValueOrEnd(absl::StatusOr<T> value) {
  if (!value.ok()) {
    ADD_FAILURE() << value.status();
    std::abort();
  }
  return *std::move(value);
}

}  // namespace

bool HasHostCuda() { return std::getenv(kFolder) != nullptr; }

std::unique_ptr<Backend> MakeHostCudaDevice() {
  static cuda::Libraries* const libraries =
      ValueOrEnd(cuda::Libraries::Open(cuda::PathsOf(std::getenv(kFolder)))).release();
  static const auto* const cubins = new std::shared_ptr<cuda::CubinStore>(cuda::CubinStore::InMemory());
  CudaBackendOptions options = {
      .libraries = libraries,
      .lanes = 8,
      .tensor_bytes = int64_t{256} << 20,  // the device's addresses are for many servers
      .host_memory = HostBufferPool::Create(int64_t{1} << 34, int64_t{64} << 20),
      .cubins = *cubins,
  };
  return std::make_unique<CalledCpu>(ValueOrEnd(MakeCudaBackend(options)));
}

}  // namespace tensord
