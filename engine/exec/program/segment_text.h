// The description of a segment for people, in profiles and in Explain.
#ifndef TENSORD_ENGINE_EXEC_PROGRAM_SEGMENT_TEXT_H_
#define TENSORD_ENGINE_EXEC_PROGRAM_SEGMENT_TEXT_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/exec/program/exec_program.h"
#include "engine/tensor/shape.h"

namespace tensord {

// Returns "dot_general", or "dot_general in max_plus"; for a fused node its ops, "fused: add multiply tanh", and the
// number of the rest if there are very many.
std::string KernelName(const ExecInstruction& instruction);

// "(f32[2,3], f32[3]) -> f32[2]"; the types are those of the program's slots, with sizes or without.
std::string TypesText(const ExecInstruction& instruction, absl::Span<const ConcreteType> slot_types);
std::string TypesText(const ExecInstruction& instruction, absl::Span<const TensorType> slot_types);

// Returns the names of the client's nodes that it computes, each once: of a fused node those of its body.
std::vector<std::string> NodesOf(const ExecInstruction& instruction);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_PROGRAM_SEGMENT_TEXT_H_
