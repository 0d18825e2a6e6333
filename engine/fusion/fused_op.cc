#include "engine/fusion/fused_op.h"

#include "engine/ops/engine_family.h"

namespace tensord {
namespace {

constexpr AttrDef kAttrs[] = {{.name = "space", .kind = AttrKind::kInt},
                              {.name = "reduced_axes", .kind = AttrKind::kInts}};

constexpr OpDef kFused = {.family = kEngineFamily,
                          .index = 0,
                          .name = "fused",
                          .summary = "Several ops in one kernel.",
                          .op_class = OpClass::kPlain,
                          .min_operands = 0,
                          .max_operands = kVariadic,
                          .attrs = kAttrs,
                          .traits = kNoTraits,
                          .dtypes = kAnyDType,
                          .infer = Facet<InferRule>::None("the types are those of the body"),
                          .refusals = RefusalTable::None("a pass makes it of nodes that were accepted"),
                          .reference = Facet<ReferenceRule>::None("the body is evaluated"),
                          .permute = Facet<PermuteRule>::None("it is made when layouts are settled"),
                          .jvp = Facet<JvpRule>::None("a pass makes it, and no client has it"),
                          .linear_transpose = Facet<TransposeRule>::None("a pass makes it, and no client has it")};

}  // namespace

const OpDef& FusedOp() { return kFused; }

}  // namespace tensord
