#include "tests/testlib/runs/veiled_backend.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/base/status_macros.h"
#include "tests/testlib/runs/hidden_address.h"

namespace tensord {
namespace {

using Addresses = absl::InlinedVector<void*, 64>;

Addresses Revealed(absl::Span<void* const> hidden) {
  Addresses addresses;
  for (void* const address : hidden) addresses.push_back(address == nullptr ? nullptr : Reveal(address));
  return addresses;
}

class VeiledSession final : public BackendSession {
 public:
  explicit VeiledSession(std::unique_ptr<BackendSession> inner) : inner_(std::move(inner)) {}

  absl::Status Run(const PreparedSession& prepared, absl::Span<void* const> slots, absl::Span<void* const> scratch,
                   absl::Span<SegmentTime> times) override {
    if (check()) inner_->set_check(check());
    return inner_->Run(prepared, Revealed(slots), Revealed(scratch), times);
  }
  absl::Status Finish() override { return inner_->Finish(); }

 private:
  const std::unique_ptr<BackendSession> inner_;
};

class VeiledBackend final : public Backend {
 public:
  VeiledBackend(std::unique_ptr<Backend> inner, VeiledOptions options)
      : inner_(std::move(inner)), options_(std::move(options)) {}

  absl::string_view kind() const override { return options_.kind; }
  DeviceDescription Describe() const override {
    DeviceDescription description = inner_->Describe();
    description.computes_in_host_memory = false;
    description.prepares_slowly = options_.prepares_slowly;
    return description;
  }
  MemoryStats Memory() const override { return inner_->Memory(); }
  absl::Status Supports(const OpDef& op, absl::Span<const DType> operands, DType result) const override {
    return inner_->Supports(op, operands, result);
  }
  bool runs_fused() const override { return inner_->runs_fused(); }
  absl::StatusOr<std::unique_ptr<PreparedSession>> Prepare(
      absl::Span<const SegmentInstruction> segments) const override {
    return inner_->Prepare(segments);
  }
  absl::StatusOr<std::unique_ptr<BackendSession>> OpenSession() override {
    ASSIGN_OR_RETURN(std::unique_ptr<BackendSession> session, inner_->OpenSession());
    return std::make_unique<VeiledSession>(std::move(session));
  }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t size_bytes) override {
    RETURN_IF_ERROR(BeforeTransfer());
    ASSIGN_OR_RETURN(std::shared_ptr<Buffer> host, inner_->Allocate(size_bytes));
    void* const hidden = Hide(host->address());
    return std::make_shared<Buffer>(hidden, size_bytes, [host = std::move(host)](void*, int64_t) {});
  }
  absl::StatusOr<BufferPtr> Import(const void* bytes, int64_t size_bytes, std::shared_ptr<const void>) override {
    ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> buffer, Allocate(size_bytes));
    RETURN_IF_ERROR(Write(buffer.get(), 0, {static_cast<const char*>(bytes), static_cast<size_t>(size_bytes)}));
    return buffer;
  }
  absl::StatusOr<std::shared_ptr<const void>> Export(BufferPtr buffer) override {
    RETURN_IF_ERROR(BeforeTransfer());
    // Of exactly this size, so that sanitizers see who reads beyond.
    const std::shared_ptr<char[]> copy(new char[static_cast<size_t>(buffer->size_bytes())]);
    const int64_t size_bytes = buffer->size_bytes();
    if (size_bytes > 0) std::memcpy(copy.get(), Reveal(buffer->address()), static_cast<size_t>(size_bytes));
    return std::shared_ptr<const void>(copy, copy.get());
  }
  absl::Status Write(Buffer* buffer, int64_t offset_bytes, absl::string_view bytes) override {
    RETURN_IF_ERROR(BeforeTransfer());
    if (!bytes.empty()) std::memcpy(Reveal(buffer->address()) + offset_bytes, bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  absl::StatusOr<std::shared_ptr<Buffer>> Copy(const Buffer& buffer) override {
    ASSIGN_OR_RETURN(std::shared_ptr<Buffer> copy, Allocate(buffer.size_bytes()));
    const char* const from = Reveal(buffer.address());
    RETURN_IF_ERROR(Write(copy.get(), 0, {from, static_cast<size_t>(buffer.size_bytes())}));
    return copy;
  }

 private:
  absl::Status BeforeTransfer() const {
    return options_.before_transfer ? options_.before_transfer() : absl::OkStatus();
  }

  const std::unique_ptr<Backend> inner_;
  const VeiledOptions options_;
};

}  // namespace

std::unique_ptr<Backend> MakeVeiledBackend(std::unique_ptr<Backend> in_host_memory, VeiledOptions options) {
  if (options.kind.empty()) options.kind = std::string(in_host_memory->kind());
  return std::make_unique<VeiledBackend>(std::move(in_host_memory), std::move(options));
}

}  // namespace tensord
