#include "tests/hostcuda/host_calls.h"

#include <cstdlib>

#include "tests/hostcuda/host_settings.h"

namespace tensord::cuda::host {

Calls& Calls::Get() {
  static Calls* const calls = new Calls;
  return *calls;
}

// FAIL=FUNCTION:N or FUNCTION:N:RESULT.
Calls::Calls() {
  const std::string text = Settings::Get().Text("FAIL");
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return;
  char* end = nullptr;
  Failure& failure = failures_[text.substr(0, colon)];
  failure.in = std::strtol(text.c_str() + colon + 1, &end, 10);
  if (*end == ':') failure.with = std::atoi(end + 1);
}

int Calls::Count(const char* function, int usual) {
  std::lock_guard lock(mutex_);
  ++counts_[function];
  const auto it = failures_.find(function);
  if (it == failures_.end()) return 0;
  const int with = it->second.with == 0 ? usual : it->second.with;
  if (it->second.in > 0) {
    if (--it->second.in > 0) return 0;
    failures_.erase(it);
  }
  return with;
}

long Calls::Of(const char* function) {
  std::lock_guard lock(mutex_);
  const auto it = counts_.find(function);
  return it == counts_.end() ? 0 : it->second;
}

void Calls::AddBytes(const char* function, size_t bytes) {
  std::lock_guard lock(mutex_);
  bytes_[function] += static_cast<long>(bytes);
}

long Calls::BytesOf(const char* function) {
  std::lock_guard lock(mutex_);
  const auto it = bytes_.find(function);
  return it == bytes_.end() ? 0 : it->second;
}

void Calls::Fail(const char* function, long n, int result) {
  std::lock_guard lock(mutex_);
  if (*function == '\0') {
    failures_.clear();
  } else {
    failures_[function] = {n, result};
  }
}

}  // namespace tensord::cuda::host
