#include "tests/hostcuda/host_streams.h"

#include <signal.h>

#include <atomic>
#include <utility>

#include "tests/hostcuda/host_context.h"
#include "tests/hostcuda/host_faults.h"
#include "tests/hostcuda/host_settings.h"

namespace tensord::cuda {
namespace host {
namespace {

// A stack for this thread's signals, unless a sanitizer has given it one: a fault may be that a stack is full.
class SignalStack {
 public:
  SignalStack() : memory_(64 * 1024) {
    stack_t now = {};
    sigaltstack(nullptr, &now);
    if ((now.ss_flags & SS_DISABLE) == 0) return;
    now = {};
    now.ss_sp = memory_.data();
    now.ss_size = memory_.size();
    is_ours_ = sigaltstack(&now, nullptr) == 0;
  }
  ~SignalStack() {
    if (!is_ours_) return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }

 private:
  std::vector<char> memory_;
  bool is_ours_ = false;
};

// What the work of this thread's stream took, by WORK_US.
thread_local std::chrono::steady_clock::time_point time_of_work;

}  // namespace

void Mark::Set() {
  std::lock_guard lock(mutex_);
  set_ = true;
  time_ = Settings::Get().Number("WORK_US", 0) > 0 ? time_of_work : std::chrono::steady_clock::now();
  is_set_.notify_all();
}

void Mark::Wait() {
  std::unique_lock lock(mutex_);
  is_set_.wait(lock, [this] { return set_; });
}

bool Mark::IsSet() {
  std::lock_guard lock(mutex_);
  return set_;
}

std::chrono::steady_clock::time_point Mark::time() {
  std::lock_guard lock(mutex_);
  return time_;
}

Work DeviceWork(std::string what, Work work) {
  return [what = std::move(what), work = std::move(work)] {
    if (Context::Get().error() != kCuSuccess) return;
    time_of_work += std::chrono::microseconds(Settings::Get().Number("WORK_US", 0));
    if (!RunGuarded(what, work)) Context::Get().Fail(kCuIllegalAddress);
  };
}

Handles<CuStreamObject>& Streams() {
  static auto* const streams = new Handles<CuStreamObject>;
  return *streams;
}

Handles<CuEventObject>& Events() {
  static auto* const events = new Handles<CuEventObject>;
  return *events;
}

Handles<CuGraphObject>& Graphs() {
  static auto* const graphs = new Handles<CuGraphObject>;
  return *graphs;
}

Handles<CuGraphExecObject>& GraphExecs() {
  static auto* const execs = new Handles<CuGraphExecObject>;
  return *execs;
}

void DrainStreams(const Context& context) {
  for (const auto& stream : Streams().All()) {
    if (stream->context == &context) stream->Drain();
  }
}

bool CaptureForbids() {
  bool is_forbidden = false;
  for (const auto& stream : Streams().All()) is_forbidden |= stream->ForbidsThisThread();
  return is_forbidden;
}

}  // namespace host

using host::Work;

CuStreamObject::CuStreamObject() {
  static std::atomic<uint64_t> count{0};
  random_.seed(static_cast<uint64_t>(host::Settings::Get().Number("SEED", 1)) * 1000 + count++);
  thread_ = std::thread([this] { Loop(); });
}

CuStreamObject::~CuStreamObject() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

CuResult CuStreamObject::Push(Work work) {
  std::lock_guard lock(mutex_);
  if (capture_ != nullptr) {
    if (is_capture_spoilt_) return kCuStreamCaptureInvalidated;
    capture_->nodes.push_back(std::move(work));
    return kCuSuccess;
  }
  queue_.push_back(std::move(work));
  wake_.notify_one();
  return kCuSuccess;
}

void CuStreamObject::Drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return queue_.empty() && !is_busy_; });
}

bool CuStreamObject::IsIdle() {
  std::lock_guard lock(mutex_);
  return queue_.empty() && !is_busy_;
}

void CuStreamObject::Loop() {
  context->Adopt();
  host::SignalStack signals;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    is_busy_ = true;
    lock.unlock();
    while (host::Settings::Get().IsOn("HOLD")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (const long delay = host::Settings::Get().Number("DELAY_US", 0); delay > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % static_cast<uint64_t>(delay)));
    }
    work();
    work = nullptr;
    lock.lock();
    is_busy_ = false;
    if (queue_.empty()) idle_.notify_all();
  }
}

CuResult CuStreamObject::BeginCapture(int mode) {
  if (mode < kCuCaptureGlobal || mode > kCuCaptureRelaxed) return kCuInvalidValue;
  std::lock_guard lock(mutex_);
  if (capture_ != nullptr) return kCuInvalidValue;
  capture_ = std::make_shared<CuGraphObject>();
  is_capture_spoilt_ = false;
  capture_mode_ = mode;
  capturing_thread_ = std::this_thread::get_id();
  return kCuSuccess;
}

CuResult CuStreamObject::EndCapture(std::shared_ptr<CuGraphObject>* graph) {
  std::lock_guard lock(mutex_);
  if (capture_ == nullptr) return kCuInvalidValue;
  std::shared_ptr<CuGraphObject> captured = std::move(capture_);
  capture_ = nullptr;
  if (is_capture_spoilt_) return kCuStreamCaptureInvalidated;
  *graph = std::move(captured);
  return kCuSuccess;
}

int CuStreamObject::capture_status() {
  std::lock_guard lock(mutex_);
  if (capture_ == nullptr) return kCuCaptureStatusNone;
  return is_capture_spoilt_ ? kCuCaptureStatusInvalidated : kCuCaptureStatusActive;
}

bool CuStreamObject::RefusesInCapture() {
  std::lock_guard lock(mutex_);
  if (capture_ == nullptr) return false;
  is_capture_spoilt_ = true;
  return true;
}

bool CuStreamObject::ForbidsThisThread() {
  std::lock_guard lock(mutex_);
  if (capture_ == nullptr || capture_mode_ == kCuCaptureRelaxed) return false;
  if (capture_mode_ == kCuCaptureThreadLocal && capturing_thread_ != std::this_thread::get_id()) return false;
  is_capture_spoilt_ = true;
  return true;
}

}  // namespace tensord::cuda
