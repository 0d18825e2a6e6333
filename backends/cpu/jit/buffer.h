#ifndef TENSORD_BACKENDS_CPU_JIT_BUFFER_H_
#define TENSORD_BACKENDS_CPU_JIT_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace tensord::cpu {

struct AlignedDelete {
  void operator()(uint8_t* memory) const { ::operator delete[](memory, std::align_val_t(64)); }
};

// Where code is written before it goes to executable memory: aligned as it will be there, which its own alignments
// count on.
using JitBuffer = std::unique_ptr<uint8_t[], AlignedDelete>;
inline JitBuffer MakeJitBuffer(size_t bytes) { return JitBuffer(new (std::align_val_t(64)) uint8_t[bytes]); }

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JIT_BUFFER_H_
