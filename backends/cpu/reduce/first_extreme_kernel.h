#ifndef TENSORD_BACKENDS_CPU_REDUCE_FIRST_EXTREME_KERNEL_H_
#define TENSORD_BACKENDS_CPU_REDUCE_FIRST_EXTREME_KERNEL_H_

#include <memory>

#include "backends/cpu/kernel/kernel.h"
#include "engine/fusion/micro_program.h"

namespace tensord::cpu {

// Of a micro program that asks where, along the fastest axis, the greatest or the least element is first, or the first
// NaN: the extreme, what equals it or is no number, and the least of the numbers of these. One pass over memory that
// keeps the extremes of blocks, and a look into the block that has it first. Null for every other program.
std::unique_ptr<Kernel> MakeFirstExtremeKernel(const MicroProgram& program);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_REDUCE_FIRST_EXTREME_KERNEL_H_
