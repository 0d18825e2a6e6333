#ifndef TENSORD_BACKENDS_CPU_JIT_JITTED_ROWS_H_
#define TENSORD_BACKENDS_CPU_JIT_JITTED_ROWS_H_

#include <cstdint>

#include "backends/cpu/jit/program.h"
#include "backends/cpu/jit/rows.h"

namespace tensord::cpu {

// Tells whether there is code for a fold of such elements in rows of these widths: AVX-512, elements as wide as the
// widest.
bool IsFoldJitted(DType dtype, int64_t length, int widest_bytes, JitIsa isa);
// Returns the largest register size of all programs' values.
int WidestRegister(const JitRows& rows);

// Tells whether there is code for rows with neither folds nor results of single elements: on AVX2 if they are made of
// whole vectors.
bool IsMapJitted(const JitRows& rows, JitIsa isa);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JIT_JITTED_ROWS_H_
