// Memory that a client may write over while a run uses it, and harm nobody but itself.
#ifndef TENSORD_ENGINE_EXEC_PROGRAM_CHANGING_MEMORY_H_
#define TENSORD_ENGINE_EXEC_PROGRAM_CHANGING_MEMORY_H_

#include <vector>

#include "engine/exec/program/exec_program.h"

namespace tensord {

// Returns by input whether a run keeps its promises to everybody else while somebody writes over the input's bytes, of
// memory that a client shares for example. The run's own results are then undefined. This holds for an input of
// floating point or complex numbers that is no output, and goes, as it is or as parts of it, only into kernels that do
// arithmetic with its elements: no element becomes an address, a length or a condition of a loop there, however often
// it is read. False for all kernels not known to be such.
std::vector<bool> InputsThatMayChange(const ExecProgram& program);

// Returns the same by slot for a value that an instruction computes, if its memory holds nothing else during the run.
// Its kernel writes it, and reads it back only to compute with it. All other readers must treat it as they treat such
// an input; a value without readers may have any dtype. It may be an output; a view of it is the same memory. False for
// slots that no instruction computes.
std::vector<bool> ResultsThatMayChange(const ExecProgram& program);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_PROGRAM_CHANGING_MEMORY_H_
