#include "backends/cuda/revived_backend.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "backends/cuda/kernel_table.h"
#include "backends/cuda/revival_backoff.h"
#include "engine/base/mutex.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"

namespace tensord::cuda {
namespace {

absl::Status LostTensor() {
  return Refuse(Refusal::kDeviceLost,
                "the device has failed since this tensor was made, and what it held is gone; make it again");
}

void AddCounts(const MemoryStats& from, MemoryStats* to) {
  to->allocated += from.allocated;
  to->reused += from.reused;
  to->refused += from.refused;
  to->trimmed += from.trimmed;
  to->peak_in_use_bytes = std::max(to->peak_in_use_bytes, from.peak_in_use_bytes);
}

// The incarnations of a device, one after the other. States: alive → lost → (nobody uses it) → being revived → alive,
// or gone where that fails. Nothing that takes long is done under its lock. Thread-safe. Uses must be over before it
// goes.
class Incarnations {
 public:
  // A call's or session's hold on an incarnation, which does not end meanwhile. Confined to its thread, which holds no
  // other one when it acquires one.
  class Use {
   public:
    Use(Incarnations* all, Incarnation* incarnation, int64_t number)
        : all_(all), incarnation_(incarnation), number_(number) {}
    Use(Use&& other) noexcept
        : all_(std::exchange(other.all_, nullptr)), incarnation_(other.incarnation_), number_(other.number_) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (all_ != nullptr) all_->EndUse();
    }
    Incarnation* operator->() const { return incarnation_; }
    int64_t number() const { return number_; }

   private:
    Incarnations* all_;
    Incarnation* incarnation_;
    int64_t number_;
  };

  Incarnations(std::function<absl::StatusOr<Incarnation>()> make, std::function<absl::Time()> clock)
      : make_(std::move(make)), clock_(std::move(clock)) {}

  // Makes the first one.
  absl::Status Begin() {
    ASSIGN_OR_RETURN(Incarnation made, make_());
    Keep(std::move(made));
    return absl::OkStatus();
  }

  // Returns the incarnation that is alive. Makes another in the place of a lost one, when the last uses of that are
  // over; DEVICE_LOST if it fails, and for a pause after that. Waits for those uses, and for another thread that makes
  // it, and leaves as CheckStopped says.
  absl::StatusOr<Use> Acquire() {
    std::optional<Incarnation> lost;
    {
      MutexLock lock(&mutex_);
      while (true) {
        if (now_.has_value() && !now_->context->is_lost()) return UseLocked();
        if (!is_reviving_ && uses_ == 0) break;
        RETURN_IF_ERROR(WaitUnlessStopped(&changed_, &mutex_));
      }
      if (backoff_.Left(clock_()) > absl::ZeroDuration()) return RefusalLocked();
      is_reviving_ = true;
      lost = std::exchange(now_, std::nullopt);  // at once: nobody may find it any more
    }
    // Also where memory ends on the way: others wait for this.
    const absl::Cleanup end = [this] {
      MutexLock lock(&mutex_);
      is_reviving_ = false;
      changed_.SignalAll();
    };
    return Revive(std::move(lost));
  }

  // Returns the incarnation that is there, be it lost or not. Nothing if there is none: all of before are lost then.
  // Never waits.
  std::optional<Use> Find() {
    MutexLock lock(&mutex_);
    if (!now_.has_value()) return std::nullopt;
    return UseLocked();
  }

  // Never waits for the device.
  DeviceDescription Describe() {
    if (const std::optional<Use> use = Find(); use.has_value()) return (*use)->backend->Describe();
    MutexLock lock(&mutex_);
    return description_;
  }

  // Likewise.
  MemoryStats Memory() const {
    std::shared_ptr<DevicePool> memory;
    MemoryStats before;
    {
      MutexLock lock(&mutex_);
      memory = memory_;
      before = before_;
    }
    MemoryStats stats = memory == nullptr ? MemoryStats() : memory->stats();
    AddCounts(before, &stats);
    return stats;
  }

 private:
  Use UseLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++uses_;
    return Use(this, &*now_, number_);
  }

  void EndUse() {
    MutexLock lock(&mutex_);
    if (--uses_ == 0) changed_.SignalAll();
  }

  // Returns a use of it.
  Use Keep(Incarnation made) {
    DeviceDescription description = made.backend->Describe();
    MutexLock lock(&mutex_);
    memory_ = made.memory;
    now_ = std::move(made);
    description_ = std::move(description);
    backoff_ = RevivalBackoff();
    ++number_;
    return UseLocked();
  }

  // Ends the lost incarnation, whose buffers may stay, and makes another; nothing if a revival has failed since. One
  // thread at a time.
  absl::StatusOr<Use> Revive(std::optional<Incarnation> lost) {
    if (lost.has_value()) End(&*lost);
    absl::StatusOr<Incarnation> made = make_();
    if (lost.has_value()) lost->memory->GiveUp();
    if (made.ok()) return Keep(*std::move(made));
    MutexLock lock(&mutex_);
    failure_ = std::string(made.status().message());
    backoff_.Failed(clock_());
    return RefusalLocked();
  }

  // Of calls that come before the next try.
  absl::Status RefusalLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::Duration left = absl::Ceil(backoff_.Left(clock_()), absl::Milliseconds(1));
    return WithRetryAfter(
        Refuse(Refusal::kDeviceLost, absl::StrCat("the device has failed and cannot be used again: ", failure_,
                                                  "; if that stays so, restart the server; the next try is due in ",
                                                  absl::FormatDuration(left))),
        left);
  }

  // Its memory stays.
  void End(Incarnation* lost) {
    const MemoryStats stats = lost->memory->stats();
    {
      MutexLock lock(&mutex_);
      AddCounts(stats, &before_);
      memory_ = nullptr;
    }
    lost->backend = nullptr;  // before its context ends
    lost->context->End();
  }

  const std::function<absl::StatusOr<Incarnation>()> make_;  // called by one thread at a time
  const std::function<absl::Time()> clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<Incarnation> now_ ABSL_GUARDED_BY(mutex_);  // nothing while it is revived, and after that has failed
  bool is_reviving_ ABSL_GUARDED_BY(mutex_) = false;
  RevivalBackoff backoff_ ABSL_GUARDED_BY(mutex_);
  std::string failure_ ABSL_GUARDED_BY(mutex_);  // of the last revival that failed
  int64_t number_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<DevicePool> memory_ ABSL_GUARDED_BY(mutex_);  // whose counts are not in before_
  MemoryStats before_ ABSL_GUARDED_BY(mutex_);                  // of the incarnations before, as far as it counts on
  DeviceDescription description_ ABSL_GUARDED_BY(mutex_);       // of the last one
};

// A session's kernels, of the incarnation that it was last run in.
class RevivedProgram final : public PreparedSession {
 public:
  using Kernels = std::shared_ptr<const PreparedSession>;

  RevivedProgram(std::shared_ptr<Incarnations> incarnations, absl::Span<const SegmentInstruction> segments)
      : incarnations_(std::move(incarnations)), segments_(segments.begin(), segments.end()) {}
  ~RevivedProgram() override {
    // Kernels enter their context to go, and it must not end meanwhile; what is left of lost ones calls no driver.
    const std::optional<Incarnations::Use> use = incarnations_->Find();
    MutexLock lock(&mutex_);
    prepared_ = nullptr;
  }

  absl::Status Prepare(const Incarnations::Use& use) {
    ASSIGN_OR_RETURN(Kernels prepared, use->backend->Prepare(segments_));
    for (size_t i = 0; i < segments_.size(); ++i) {
      scratch_bytes_.push_back(prepared->scratch_bytes(i));
      descriptions_.push_back(prepared->DescribeKernel(i));
    }
    workspace_bytes_ = prepared->workspace_bytes();
    chains_.assign(prepared->chains().begin(), prepared->chains().end());
    joins_ = prepared->joins();
    MutexLock lock(&mutex_);
    prepared_ = std::move(prepared);
    number_ = use.number();
    return absl::OkStatus();
  }

  // Returns the kernels in this incarnation, which the use keeps. In a new one, one of those who ask prepares them, and
  // the others wait; each leaves as CheckStopped says, and another takes the place of the one who prepares.
  absl::StatusOr<Kernels> In(const Incarnations::Use& use) const {
    {
      Kernels before;  // goes without the lock
      MutexLock lock(&mutex_);
      while (number_ != use.number() && is_preparing_) RETURN_IF_ERROR(WaitUnlessStopped(&changed_, &mutex_));
      if (number_ == use.number()) return prepared_;
      before = std::exchange(prepared_, nullptr);
      number_ = 0;
      is_preparing_ = true;
    }
    // Also where memory ends on the way: others wait for this.
    const absl::Cleanup end = [this] {
      MutexLock lock(&mutex_);
      is_preparing_ = false;
      changed_.SignalAll();
    };
    ASSIGN_OR_RETURN(Kernels prepared, PrepareAgain(use));
    MutexLock lock(&mutex_);
    prepared_ = std::move(prepared);
    number_ = use.number();
    return prepared_;
  }

  int64_t scratch_bytes(size_t position) const override { return scratch_bytes_[position]; }
  int64_t workspace_bytes() const override { return workspace_bytes_; }
  absl::Span<const SegmentChain> chains() const override { return chains_; }
  std::vector<JoinCount> joins() const override { return joins_; }
  std::string DescribeKernel(size_t position) const override { return descriptions_[position]; }
  std::string DescribeReplay() const override {
    MutexLock lock(&mutex_);
    return prepared_ == nullptr ? "" : prepared_->DescribeReplay();
  }

 private:
  absl::StatusOr<Kernels> PrepareAgain(const Incarnations::Use& use) const {
    ASSIGN_OR_RETURN(Kernels prepared, use->backend->Prepare(segments_));
    RETURN_IF_ERROR(CheckStopped());  // what was broken off may look as if it had succeeded
    // Memory was planned for the kernels of before.
    bool fits = prepared->workspace_bytes() <= workspace_bytes_ && prepared->chains().size() == chains_.size();
    for (size_t i = 0; i < segments_.size(); ++i) fits = fits && prepared->scratch_bytes(i) <= scratch_bytes_[i];
    if (!fits) return absl::InternalError("a kernel takes more memory since the device has failed");
    return prepared;
  }

  const std::shared_ptr<Incarnations> incarnations_;
  const std::vector<SegmentInstruction> segments_;
  std::vector<int64_t> scratch_bytes_;  // constant after Prepare, like those up to the mutex
  int64_t workspace_bytes_ = 0;
  std::vector<SegmentChain> chains_;
  std::vector<JoinCount> joins_;
  std::vector<std::string> descriptions_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  mutable Kernels prepared_ ABSL_GUARDED_BY(mutex_);
  mutable int64_t number_ ABSL_GUARDED_BY(mutex_) = 0;         // of its incarnation; 0: none
  mutable bool is_preparing_ ABSL_GUARDED_BY(mutex_) = false;  // one thread, for the incarnation that all of them use
};

// A run in one incarnation, which stays until the run is over.
class RevivedSession final : public BackendSession {
 public:
  RevivedSession(Incarnations::Use use, std::unique_ptr<BackendSession> session)
      : use_(std::move(use)), session_(std::move(session)) {}
  absl::Status Run(const PreparedSession& prepared, absl::Span<void* const> slots, absl::Span<void* const> scratch,
                   absl::Span<SegmentTime> times) override {
    // The device may have been lost between the first look at the run's tensors and this session.
    if (!(*use_)->memory->HasAll(slots)) return LostTensor();
    ASSIGN_OR_RETURN(const RevivedProgram::Kernels kernels, KernelsOf(static_cast<const RevivedProgram&>(prepared)));
    kernels_.push_back(kernels);
    session_->set_check(check());
    return session_->Run(*kernels, slots, scratch, times);
  }
  absl::Status Finish() override {
    if (session_ == nullptr) return absl::OkStatus();
    const absl::Status finished = session_->Finish();
    session_ = nullptr;
    kernels_.clear();
    use_ = std::nullopt;
    return finished;
  }

 private:
  // Ends early with the refusal of the check.
  absl::StatusOr<RevivedProgram::Kernels> KernelsOf(const RevivedProgram& program) const {
    StopSignal stop(check());
    const StopSignal::Scope scope(check() ? &stop : StopSignal::Current());
    return program.In(*use_);
  }

  std::optional<Incarnations::Use> use_;  // first: it ends last
  std::vector<RevivedProgram::Kernels> kernels_;
  std::unique_ptr<BackendSession> session_;  // null once it is over
};

// Passes calls on to the incarnation that is alive.
class RevivedBackend final : public Backend {
 public:
  RevivedBackend(std::string name, std::shared_ptr<Incarnations> incarnations, bool runs_fused)
      : name_(std::move(name)), incarnations_(std::move(incarnations)), runs_fused_(runs_fused) {}

  absl::string_view kind() const override { return "cuda"; }
  DeviceDescription Describe() const override { return incarnations_->Describe(); }
  MemoryStats Memory() const override { return incarnations_->Memory(); }
  bool runs_fused() const override { return runs_fused_; }
  absl::Status Supports(const OpDef& op, absl::Span<const DType> operands, DType result) const override {
    return CheckHasKernel(name_, op, operands, result);  // as each incarnation says, of which there may be none now
  }

  absl::StatusOr<std::unique_ptr<PreparedSession>> Prepare(
      absl::Span<const SegmentInstruction> segments) const override {
    auto program = std::make_unique<RevivedProgram>(incarnations_, segments);
    ASSIGN_OR_RETURN(const Incarnations::Use use, incarnations_->Acquire());
    RETURN_IF_ERROR(program->Prepare(use));
    return program;
  }
  absl::StatusOr<std::unique_ptr<BackendSession>> OpenSession() override {
    ASSIGN_OR_RETURN(Incarnations::Use use, incarnations_->Acquire());
    ASSIGN_OR_RETURN(std::unique_ptr<BackendSession> session, use->backend->OpenSession());
    return std::make_unique<RevivedSession>(std::move(use), std::move(session));
  }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t size_bytes) override {
    ASSIGN_OR_RETURN(const Incarnations::Use use, incarnations_->Acquire());
    return use->backend->Allocate(size_bytes);
  }
  absl::StatusOr<BufferPtr> Import(const void* bytes, int64_t size_bytes, std::shared_ptr<const void> owner) override {
    ASSIGN_OR_RETURN(const Incarnations::Use use, incarnations_->Acquire());
    return use->backend->Import(bytes, size_bytes, std::move(owner));
  }
  absl::StatusOr<std::shared_ptr<const void>> Export(BufferPtr buffer) override {
    ASSIGN_OR_RETURN(const Incarnations::Use use, incarnations_->Acquire());
    if (buffer->is_lost()) return LostTensor();
    return use->backend->Export(std::move(buffer));
  }
  absl::Status ExportAll(absl::Span<const BufferPtr> buffers, absl::Span<std::shared_ptr<const void>> bytes) override {
    ASSIGN_OR_RETURN(const Incarnations::Use use, incarnations_->Acquire());
    for (const BufferPtr& buffer : buffers) {
      if (buffer != nullptr && buffer->is_lost()) return LostTensor();
    }
    return use->backend->ExportAll(buffers, bytes);
  }
  absl::Status Write(Buffer* buffer, int64_t offset_bytes, absl::string_view bytes) override {
    ASSIGN_OR_RETURN(const Incarnations::Use use, incarnations_->Acquire());
    if (buffer->is_lost()) return LostTensor();
    return use->backend->Write(buffer, offset_bytes, bytes);
  }
  absl::StatusOr<std::shared_ptr<Buffer>> Copy(const Buffer& buffer) override {
    ASSIGN_OR_RETURN(const Incarnations::Use use, incarnations_->Acquire());
    if (buffer.is_lost()) return LostTensor();
    return use->backend->Copy(buffer);
  }

 private:
  const std::string name_;
  const std::shared_ptr<Incarnations> incarnations_;
  const bool runs_fused_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeRevivedBackend(std::string name,
                                                            std::function<absl::StatusOr<Incarnation>()> make,
                                                            std::function<absl::Time()> clock) {
  const auto incarnations = std::make_shared<Incarnations>(std::move(make), std::move(clock));
  RETURN_IF_ERROR(incarnations->Begin());
  bool runs_fused = false;
  {
    ASSIGN_OR_RETURN(const Incarnations::Use use, incarnations->Acquire());
    runs_fused = use->backend->runs_fused();
  }
  return std::make_unique<RevivedBackend>(std::move(name), incarnations, runs_fused);
}

}  // namespace tensord::cuda
