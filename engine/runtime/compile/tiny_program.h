#ifndef TENSORD_ENGINE_RUNTIME_COMPILE_TINY_PROGRAM_H_
#define TENSORD_ENGINE_RUNTIME_COMPILE_TINY_PROGRAM_H_

#include <cstdint>

#include "engine/exec/program/exec_program.h"
#include "engine/ir/size_binding.h"

namespace tensord {

// A run is tiny where it takes some microseconds: a few core ops on some kilobytes, on a device that computes on its
// caller. What is fused, or reads windows, counts as what it stands for: values that are in no memory take time too.

// More than arguments of a tiny run can have together.
inline constexpr int64_t kMostTinyBytes = 32 << 10;

// Whether a run of the program may be tiny, if its sizes are small.
bool MayBeTiny(const ExecProgram& program);
// Whether a run with these sizes is, of a program that may be. Takes time in proportion to what may be tiny.
bool IsTiny(const ExecProgram& program, const SizeBinding& sizes);

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_COMPILE_TINY_PROGRAM_H_
