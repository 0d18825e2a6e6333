// What a client may write over while a run uses it, and harm nobody but itself.
#ifndef TENSORD_ENGINE_EXEC_PROGRAM_CHANGING_MEMORY_H_
#define TENSORD_ENGINE_EXEC_PROGRAM_CHANGING_MEMORY_H_

#include <vector>

#include "engine/exec/program/exec_program.h"

namespace tensord {

// By input: whether a run keeps its promises to everybody else while somebody writes over the input's bytes, of memory
// that a client shares for example. The run's own results are then undefined. So it is where the input holds floating
// point or complex numbers, is no output, and goes, as it is or as parts of it, into kernels only that do nothing with
// an element but arithmetic: no element becomes an address, a length or a condition of a loop there, however often it
// is read. What nobody has thought about is false.
std::vector<bool> InputsThatMayChange(const ExecProgram& program);

// By slot: the same of a value that an instruction computes, if its memory holds nothing else during the run. Its
// kernel writes it, and reads nothing back but to compute with it; whatever else reads it must do as with an input, but
// for what nothing reads: of that any dtype will do. It may be an output; a view of it is the same memory. False for
// slots that no instruction computes.
std::vector<bool> ResultsThatMayChange(const ExecProgram& program);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_PROGRAM_CHANGING_MEMORY_H_
