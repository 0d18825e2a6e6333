#ifndef TENSORD_ENGINE_RUNTIME_COMPILE_EXPLAIN_H_
#define TENSORD_ENGINE_RUNTIME_COMPILE_EXPLAIN_H_

#include <string>

#include "engine/runtime/compile/compiled_program.h"

namespace tensord {

// Explains for people why a program runs as it does: the work of the passes; every value with its type and its place in
// memory; the guards; and the sessions with their segments, each with its kernel, the client's nodes that it computes
// and the bytes that it moves (operands and results, each once). If sizes are open, all that is known without them.
// Linear in the program. The same text for the same graph and settings; clients/cli/programs/explain_text.h has its
// grammar.
std::string ExplainProgram(const CompiledProgram& program);

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_COMPILE_EXPLAIN_H_
