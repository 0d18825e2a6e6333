#include "backends/cpu/jit/code.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "engine/base/allocated_bytes.h"

namespace tensord::cpu {
namespace {

// The most mappings of a process: a mapping of memory is a resource that the system counts too.
constexpr int kMaxMappings = 8192;
std::atomic<int> mappings = 0;

size_t Aligned(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

bool ProtectByMprotect(void* pages, size_t bytes) { return mprotect(pages, bytes, PROT_READ | PROT_EXEC) == 0; }

std::unique_ptr<const JitCode> JitCode::Create(const std::vector<std::string>& parts, ProtectCode protect) {
  std::unique_ptr<JitCode> code(new JitCode());
  size_t bytes = 0;
  for (const std::string& part : parts) {
    code->offsets_.push_back(bytes);
    code->code_bytes_ += part.size();
    bytes += Aligned(part.size(), 64);
  }
  if (bytes == 0) return nullptr;
  if (mappings.fetch_add(1, std::memory_order_relaxed) >= kMaxMappings) {
    mappings.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  const size_t page_bytes = Aligned(bytes, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  void* const pages = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    mappings.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  code->pages_ = pages;
  code->page_bytes_ = page_bytes;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::memcpy(static_cast<char*>(pages) + code->offsets_[i], parts[i].data(), parts[i].size());
  }
  if (!protect(pages, page_bytes)) return nullptr;
  AllocatedBytes::Add(static_cast<int64_t>(page_bytes));
  return code;
}

JitCode::~JitCode() {
  if (pages_ == nullptr) return;
  munmap(pages_, page_bytes_);
  AllocatedBytes::Add(-static_cast<int64_t>(page_bytes_));
  mappings.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace tensord::cpu
