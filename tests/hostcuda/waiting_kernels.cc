#include "tests/hostcuda/waiting_kernels.h"

#include <cstdio>
#include <utility>

namespace tensord::cuda::host {

WaitingKernels& WaitingKernels::Get() {
  static auto* const kernels = new WaitingKernels;
  return *kernels;
}

void WaitingKernels::Add(const std::string& key, Kernel kernel) {
  std::lock_guard lock(mutex_);
  if (made_.count(key) == 0) waiting_.emplace(key, std::move(kernel));
}

WaitingKernels::Made WaitingKernels::Make(const std::string& key) {
  std::lock_guard lock(mutex_);
  if (const auto it = waiting_.find(key); it != waiting_.end()) {
    std::vector<std::string> alike;
    for (const auto& [other, kernel] : waiting_) {
      if (kernel.command == it->second.command) alike.push_back(other);
    }
    CompileLocked(alike);
  }
  const auto made = made_.find(key);
  return made == made_.end() ? Made() : made->second;
}

void WaitingKernels::CompileLocked(const std::vector<std::string>& keys) {
  std::vector<const HostText*> texts;
  for (const std::string& key : keys) texts.push_back(&waiting_.at(key).text);
  const Kernel& first = waiting_.at(keys[0]);
  auto library = std::make_shared<std::string>();
  std::string log;
  if (!CompileLibrary(first.command, LibrarySource(texts, first.is_checked), library.get(), &log)) {
    if (keys.size() == 1) {
      std::fprintf(stderr, "hostcuda: a kernel that was promised: %s\n", log.c_str());
      library = nullptr;
    } else {
      for (const std::string& key : keys) CompileLocked({key});
      return;
    }
  }
  for (size_t place = 0; place < keys.size(); ++place) {
    made_[keys[place]] = {library, place};
    waiting_.erase(keys[place]);
  }
}

}  // namespace tensord::cuda::host
