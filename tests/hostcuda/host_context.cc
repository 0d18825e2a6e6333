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

Context& Context::Get() {
  static Context* const context = new Context;
  return *context;
}

CuContext Context::Retain() {
  std::lock_guard lock(mutex_);
  // Contexts of before are not deleted: none of their addresses is that of a later one.
  if (retained_++ == 0) live_ = new CuContextObject;
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
  if (context != nullptr && context != live_) return kCuInvalidContext;
  t_current = context;
  return kCuSuccess;
}

bool Context::is_current() const { return t_current != nullptr && t_current == live_; }

void Context::Fail(CuResult error) {
  CuResult none = kCuSuccess;
  error_.compare_exchange_strong(none, error);
}

CuResult EnterDriver(const char* function) {
  if (const CuResult injected = CountCall(function); injected != 0) return injected;
  return Context::Get().is_initialized() ? kCuSuccess : kCuNotInitialized;
}

CuResult EnterContext(const char* function) {
  if (const CuResult entered = EnterDriver(function); entered != 0) return entered;
  return Context::Get().is_current() ? Context::Get().error() : kCuInvalidContext;
}

}  // namespace tensord::cuda::host
