#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_VECTORS_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_VECTORS_H_

#include <cstdint>

#include "engine/fusion/micro_program.h"

namespace tensord {

// Bytes that a thread moves best at once.
inline constexpr int64_t kCudaVectorBytes = 16;

// The way in which elements that are neighbours along axis 0 are read.
enum class CudaReading : uint8_t {
  kOnce,    // one element for all
  kVector,  // neighbours in memory, aligned
  kEach,
};

// Returns it for `width` neighbours of a load or an iota, the first at a multiple of `width` along axis 0.
// `alignment_bytes` is that of the operand's memory.
CudaReading CudaReadingOf(const MicroInstruction& instruction, int64_t width, int64_t alignment_bytes);

// Returns the number of elements, a power of two, that a thread best computes side by side so that `vector_bytes` cross
// the memory at once: by the program's element sizes and the length of its body, and not by its axes.
int64_t CudaVectorWidth(const MicroProgram& program, int64_t vector_bytes);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_VECTORS_H_
