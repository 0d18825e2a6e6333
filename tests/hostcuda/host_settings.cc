#include "tests/hostcuda/host_settings.h"

#include <cstdlib>

namespace tensord::cuda::host {

Settings& Settings::Get() {
  static Settings* const settings = new Settings;  // never destroyed: streams end after static objects do
  return *settings;
}

std::string Settings::Text(const char* name) {
  std::lock_guard lock(mutex_);
  const auto it = values_.find(name);
  if (it != values_.end()) return it->second;
  const char* text = std::getenv((std::string("HOST_CUDA_") + name).c_str());
  return values_[name] = text == nullptr ? "" : text;
}

long Settings::Number(const char* name, long otherwise) {
  const std::string text = Text(name);
  return text.empty() ? otherwise : std::strtol(text.c_str(), nullptr, 10);
}

void Settings::Set(const char* name, const char* value) {
  std::lock_guard lock(mutex_);
  values_[name] = value;
}

}  // namespace tensord::cuda::host
