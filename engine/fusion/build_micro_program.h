#ifndef TENSORD_ENGINE_FUSION_BUILD_MICRO_PROGRAM_H_
#define TENSORD_ENGINE_FUSION_BUILD_MICRO_PROGRAM_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/fusion/micro_program.h"
#include "engine/ir/graph.h"

namespace tensord {

// Builds the micro program of a fused node from its attributes, its body, and the body's values with all sizes known.
// Takes time in proportion to the body. INTERNAL if the pass `fuse` makes no such body.
absl::StatusOr<MicroProgram> BuildMicroProgram(const Attributes& attrs, const Graph& body,
                                               absl::Span<const ConcreteType> types);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FUSION_BUILD_MICRO_PROGRAM_H_
