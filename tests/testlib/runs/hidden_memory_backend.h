#ifndef TENSORD_TESTS_TESTLIB_RUNS_HIDDEN_MEMORY_BACKEND_H_
#define TENSORD_TESTS_TESTLIB_RUNS_HIDDEN_MEMORY_BACKEND_H_

#include <cstdint>
#include <memory>

#include "engine/exec/backend/backend.h"

namespace tensord {

// A device whose memory the host cannot dereference: the processor accepts none of its addresses, so that any code that
// touches a buffer without asking the backend ends with a fault. Runs every op by its reference rule. Keeps the engine
// honest for devices that are not the CPU; counts its buffers so that tests find leaks.
class HiddenMemoryBackend final : public Backend {
 public:
  explicit HiddenMemoryBackend(bool runs_fused = false);
  ~HiddenMemoryBackend() override;

  absl::string_view kind() const override { return "hidden"; }
  DeviceDescription Describe() const override;
  MemoryStats Memory() const override;
  absl::Status Supports(const OpDef& op, absl::Span<const DType> operands, DType result) const override;
  bool runs_fused() const override { return runs_fused_; }
  absl::StatusOr<std::unique_ptr<PreparedSession>> Prepare(
      absl::Span<const SegmentInstruction> segments) const override;
  absl::StatusOr<std::unique_ptr<BackendSession>> OpenSession() override;
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t size_bytes) override;
  absl::StatusOr<BufferPtr> Import(const void* bytes, int64_t size_bytes, std::shared_ptr<const void> owner) override;
  absl::StatusOr<std::shared_ptr<const void>> Export(BufferPtr buffer) override;
  absl::Status Write(Buffer* buffer, int64_t offset_bytes, absl::string_view bytes) override;
  absl::StatusOr<std::shared_ptr<Buffer>> Copy(const Buffer& buffer) override;

  int64_t live_buffers() const;

 private:
  struct Counters;
  const bool runs_fused_;
  const std::shared_ptr<Counters> counters_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_RUNS_HIDDEN_MEMORY_BACKEND_H_
