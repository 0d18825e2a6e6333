#include "tests/hostcuda/host_context.h"

#include "tests/hostcuda/host_calls.h"

namespace tensord::cuda::host {
namespace {

thread_local CuContext t_current = nullptr;

// A test may let any call report an error of the context, which then stays.
CuResult CountCall(const char* function) {
  const CuResult injected = Calls::Get().Count(function, kCuOutOfMemory);
  if (injected == kCuIllegalAddress || injected == kCuLaunchFailed) Context::Get().Fail(injected);
  return injected;
}

}  // namespace

Context& Context::Of(int device) {
  static Context* const contexts = new Context[kMostDevices];
  return contexts[device];
}

Context& Context::Get() { return t_current == nullptr ? Of(0) : *t_current->owner; }

int Context::device() const { return static_cast<int>(this - &Of(0)); }

CuContext Context::Retain() {
  std::lock_guard lock(mutex_);
  // Contexts of before are not deleted: none of their addresses is that of a later one.
  if (retained_++ == 0) live_ = new CuContextObject{this};
  return live_;
}

bool Context::Release() {
  std::lock_guard lock(mutex_);
  return retained_ > 0 && --retained_ == 0;
}

void Context::Destroy() {
  std::lock_guard lock(mutex_);
  live_ = nullptr;
  retained_ = 0;
  error_ = kCuSuccess;
}

CuResult Context::SetCurrent(CuContext context) {
  if (context != nullptr && context != context->owner->live_) return kCuInvalidContext;
  t_current = context;
  return kCuSuccess;
}

CuContext Context::Current() { return t_current; }

void Context::Adopt() const { t_current = live_; }

bool Context::is_current() const { return t_current != nullptr && t_current == live_; }

void Context::Fail(CuResult error) {
  CuResult none = kCuSuccess;
  error_.compare_exchange_strong(none, error);
}

CuResult EnterDriver(const char* function) {
  if (const CuResult injected = CountCall(function); injected != 0) return injected;
  return Context::is_initialized() ? kCuSuccess : kCuNotInitialized;
}

CuResult EnterContext(const char* function) {
  if (const CuResult entered = EnterDriver(function); entered != 0) return entered;
  return Context::Get().is_current() ? Context::Get().error() : kCuInvalidContext;
}

}  // namespace tensord::cuda::host
