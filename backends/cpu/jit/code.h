#ifndef TENSORD_BACKENDS_CPU_JIT_CODE_H_
#define TENSORD_BACKENDS_CPU_JIT_CODE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace tensord::cpu {

struct AlignedDelete {
  void operator()(uint8_t* memory) const { ::operator delete[](memory, std::align_val_t(64)); }
};

// Memory that code is written to before it goes to executable pages: aligned as it will be there, which the code's own
// alignments count on.
using JitBuffer = std::unique_ptr<uint8_t[], AlignedDelete>;
inline JitBuffer MakeJitBuffer(size_t bytes) { return JitBuffer(new (std::align_val_t(64)) uint8_t[bytes]); }

// Makes pages executable and no longer writable; false if the machine refuses.
using ProtectCode = bool (*)(void* pages, size_t bytes);
bool ProtectByMprotect(void* pages, size_t bytes);

// Machine code that was made at run time, on pages of its own: written first, executable then, never both. Owns the
// pages; constant and thread-safe once made.
class JitCode {
 public:
  // Returns the parts one after the other, each aligned to 64. They may hold no addresses in themselves. Null if the
  // machine grants no memory for code, or the process has had its share of it.
  static std::unique_ptr<const JitCode> Create(const std::vector<std::string>& parts, ProtectCode protect);
  ~JitCode();
  JitCode(const JitCode&) = delete;
  JitCode& operator=(const JitCode&) = delete;

  const void* part(size_t index) const { return static_cast<const char*>(pages_) + offsets_[index]; }
  size_t code_bytes() const { return code_bytes_; }

 private:
  JitCode() = default;

  void* pages_ = nullptr;
  size_t page_bytes_ = 0;
  size_t code_bytes_ = 0;
  std::vector<size_t> offsets_;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JIT_CODE_H_
