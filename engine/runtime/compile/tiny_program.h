#ifndef TENSORD_ENGINE_RUNTIME_COMPILE_TINY_PROGRAM_H_
#define TENSORD_ENGINE_RUNTIME_COMPILE_TINY_PROGRAM_H_

#include <cstdint>

#include "engine/exec/program/exec_program.h"
#include "engine/ir/size_binding.h"

namespace tensord {

// A run is tiny if it takes some microseconds: a few core ops on some kilobytes, on a device that computes on its
// caller. Ops that are fused, or read windows, count as the ops that they stand for: values that are in no memory take
// time too.

// More than arguments of a tiny run can have together.
inline constexpr int64_t kMostTinyBytes = 32 << 10;

// Tells whether a run of the program may be tiny, given small sizes.
bool MayBeTiny(const ExecProgram& program);
// Tells whether a run with these sizes is tiny, of a program that may be. Takes time in proportion to the bound of tiny
// runs.
bool IsTiny(const ExecProgram& program, const SizeBinding& sizes);

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_COMPILE_TINY_PROGRAM_H_
