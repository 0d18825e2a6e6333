#ifndef TENSORD_BACKENDS_CPU_REDUCE_FIRST_EXTREME_KERNEL_H_
#define TENSORD_BACKENDS_CPU_REDUCE_FIRST_EXTREME_KERNEL_H_

#include <memory>

#include "backends/cpu/kernel/kernel.h"
#include "engine/fusion/micro_program.h"

namespace tensord::cpu {

// Makes the kernel of a micro program that asks for the first place of the greatest or the least element, or of the
// first NaN, along the fastest axis. Such a program takes the extreme, the elements that equal it or are NaN, and the
// least of their numbers. The kernel passes over memory once, keeps the extremes of blocks, and looks into the first
// block that has the extreme. Null for every other program.
std::unique_ptr<Kernel> MakeFirstExtremeKernel(const MicroProgram& program);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_REDUCE_FIRST_EXTREME_KERNEL_H_
