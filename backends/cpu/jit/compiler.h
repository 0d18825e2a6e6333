#ifndef TENSORD_BACKENDS_CPU_JIT_COMPILER_H_
#define TENSORD_BACKENDS_CPU_JIT_COMPILER_H_

#include <cstdint>
#include <string>

#include "backends/cpu/jit/program.h"

namespace tensord::cpu {

// Code that runs a program on n elements of arrays; `at` has their addresses, by place. Reads and writes those n
// elements and nothing beside them. Arrays need no alignment.
using JitFunction = void (*)(void* const* at, int64_t n);

// Returns the code of a JitFunction, without addresses in itself; empty if this build makes none. All nodes are
// IsJitted. In code that streams, arrays of stores that may be streamed are aligned to 64.
std::string CompileJitProgram(const JitProgram& program, JitIsa isa, bool streams);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JIT_COMPILER_H_
