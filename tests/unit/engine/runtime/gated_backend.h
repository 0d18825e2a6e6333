#ifndef TENSORD_TESTS_UNIT_ENGINE_RUNTIME_GATED_BACKEND_H_
#define TENSORD_TESTS_UNIT_ENGINE_RUNTIME_GATED_BACKEND_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/mutex.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/exec/backend/backend.h"
#include "tests/testlib/runs/hidden_memory_backend.h"

namespace tensord {

// Set once, waited for by any thread.
class Event {
 public:
  void Set() {
    MutexLock lock(&mutex_);
    set_ = true;
    changed_.SignalAll();
  }
  void Wait() {
    MutexLock lock(&mutex_);
    while (!set_) changed_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

// Values that callbacks on other threads hand over, in the order in which they come.
template <typename T>
class Inbox {
 public:
  void Put(T value) {
    MutexLock lock(&mutex_);
    values_.push_back(std::move(value));
    changed_.SignalAll();
  }
  size_t size() const {
    MutexLock lock(&mutex_);
    return values_.size();
  }
  // Everything so far, when there are `count`.
  std::vector<T> WaitFor(size_t count) {
    MutexLock lock(&mutex_);
    while (values_.size() < count) changed_.Wait(&mutex_);
    return values_;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<T> values_ ABSL_GUARDED_BY(mutex_);
};

// The hidden-memory backend with a test's code before each run, each preparation, and before memory is made of bytes of
// the host, what tells that this memory is lost, what every run is refused with, and an op that it does not have. Set
// them before use.
class GatedBackend final : public Backend {
 public:
  std::function<void()> before_run;
  std::function<void()> before_prepare;
  std::function<void()> before_import;
  MemoryLoss loss;
  absl::Status fault;
  std::string lacks;
  bool prepares_slowly = false;
  mutable std::vector<std::thread::id> prepared_on;  // the threads of Prepare, where that is slow; read it after them

  absl::string_view kind() const override { return "gated"; }
  DeviceDescription Describe() const override {
    DeviceDescription description = inner_.Describe();
    description.prepares_slowly = prepares_slowly;
    return description;
  }
  MemoryStats Memory() const override { return inner_.Memory(); }
  absl::Status Supports(const OpDef& op, absl::Span<const DType> operands, DType result) const override {
    if (op.name == lacks) return Refuse(Refusal::kUnsupportedOnDevice, absl::StrCat("gated devices have no ", lacks));
    return inner_.Supports(op, operands, result);
  }
  absl::StatusOr<std::unique_ptr<PreparedSession>> Prepare(
      absl::Span<const SegmentInstruction> segments) const override {
    if (before_prepare) before_prepare();
    if (prepares_slowly) {
      MutexLock lock(&preparing_);
      prepared_on.push_back(std::this_thread::get_id());
    }
    return inner_.Prepare(segments);
  }
  absl::StatusOr<std::unique_ptr<BackendSession>> OpenSession() override {
    if (before_run) before_run();
    RETURN_IF_ERROR(fault);
    return inner_.OpenSession();
  }
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t size_bytes) override { return inner_.Allocate(size_bytes); }
  absl::StatusOr<BufferPtr> Import(const void* bytes, int64_t size_bytes, std::shared_ptr<const void> owner) override {
    if (before_import) before_import();
    ASSIGN_OR_RETURN(BufferPtr buffer, inner_.Import(bytes, size_bytes, std::move(owner)));
    if (loss == nullptr) return buffer;
    return std::make_shared<const Buffer>(
        buffer->address(), size_bytes, [buffer](void*, int64_t) {}, loss);
  }
  absl::StatusOr<std::shared_ptr<const void>> Export(BufferPtr buffer) override {
    return inner_.Export(std::move(buffer));
  }
  absl::Status Write(Buffer* buffer, int64_t offset_bytes, absl::string_view bytes) override {
    return inner_.Write(buffer, offset_bytes, bytes);
  }
  absl::StatusOr<std::shared_ptr<Buffer>> Copy(const Buffer& buffer) override { return inner_.Copy(buffer); }

  int64_t live_buffers() const { return inner_.live_buffers(); }

 private:
  HiddenMemoryBackend inner_;
  mutable Mutex preparing_;  // held where prepared_on grows
};

}  // namespace tensord

#endif  // TENSORD_TESTS_UNIT_ENGINE_RUNTIME_GATED_BACKEND_H_
