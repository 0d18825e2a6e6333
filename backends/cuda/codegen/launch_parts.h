#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_LAUNCH_PARTS_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_LAUNCH_PARTS_H_

#include <cstdint>

#include "backends/cuda/codegen/printer.h"
#include "engine/fusion/micro_program.h"

namespace tensord {

// The blocks that a part of a launch has for each processor, at least.
inline constexpr int64_t kLeastBlocksOfPart = 2;

// Returns the parts of a launch of so many steps and blocks (CudaLaunch::parts), since nothing stops a launch. A step
// is what a lane of a processor does in a cycle or two: a guess, and parts that take some times longer than meant, or
// are short, do no harm. Each part has blocks for every processor.
int64_t CudaLaunchParts(double steps, int64_t blocks, const CudaOptions& options);

// Returns the steps of an instruction in one point, at most.
double CudaSteps(const MicroProgram& program, int32_t instruction);

// Tells whether the numbers decide how long a program takes (KernelText::varies): whether loops of its functions may
// take a good part of a launch.
bool CudaVaries(const MicroProgram& program, const CudaOptions& options);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_LAUNCH_PARTS_H_
