#include "backends/cuda/codegen/vectors.h"

#include <algorithm>

namespace tensord {

CudaReading CudaReadingOf(const MicroInstruction& instruction, int64_t width, int64_t alignment_bytes) {
  const MicroAccess& access = instruction.access;
  if (width == 1 || access.strides[0] == 0) return CudaReading::kOnce;
  bool is_vector = instruction.kind == MicroKind::kLoad && access.strides[0] == 1 && access.offset % width == 0 &&
                   alignment_bytes % (width * SizeOf(instruction.dtype)) == 0;
  for (size_t d = 1; d < access.strides.size(); ++d) is_vector &= access.strides[d] % width == 0;
  return is_vector ? CudaReading::kVector : CudaReading::kEach;
}

int64_t CudaVectorWidth(const MicroProgram& program, int64_t vector_bytes) {
  int64_t largest = 2, pointwise = 0;
  for (const MicroInstruction& instruction : program.instructions) {
    if (instruction.level == MicroLevel::kUniform) continue;
    ++pointwise;
    if (instruction.kind == MicroKind::kLoad && instruction.access.strides[0] == 1) {
      largest = std::max(largest, SizeOf(instruction.dtype));
    }
  }
  for (const MicroResult& result : program.results) {
    largest = std::max(largest, SizeOf(program.instructions[static_cast<size_t>(result.value)].dtype));
  }
  // Long bodies have enough to do without, and would only fill the registers.
  const int64_t most = pointwise > 96 ? 1 : pointwise > 48 ? 2 : 8;
  return std::max<int64_t>(std::min(vector_bytes / largest, most), 1);
}

}  // namespace tensord
