#include "engine/ops/core_ops.h"

#include <array>

#include "engine/ops/contraction.h"
#include "engine/ops/diagonal.h"
#include "engine/ops/dynamic_slicing.h"
#include "engine/ops/dynamic_truncate.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/extents.h"
#include "engine/ops/gathering.h"
#include "engine/ops/leaves.h"
#include "engine/ops/reduction.h"
#include "engine/ops/scattering.h"
#include "engine/ops/selection.h"
#include "engine/ops/slicing.h"
#include "engine/ops/structural.h"
#include "engine/ops/triangle.h"

namespace tensord {
namespace {

constexpr std::array<OpDef, kNumCoreOps> kTable = {{
#define TENSORD_UNARY(op, name, functor, summary) \
  UnaryDef<scalar::functor>(static_cast<uint16_t>(CoreOp::op), name, summary),
#define TENSORD_BINARY(op, name, functor, traits, summary) \
  BinaryDef<scalar::functor>(static_cast<uint16_t>(CoreOp::op), name, traits, summary),
#define TENSORD_OP(op, definition) k##definition##Def,
#include "engine/ops/core_ops.def"
#undef TENSORD_UNARY
#undef TENSORD_BINARY
#undef TENSORD_OP
}};

// Checks the table when it is compiled.
consteval bool Audit() {
  for (size_t i = 0; i < kTable.size(); ++i) {
    const OpDef& op = kTable[i];
    if (op.index != i) throw "a definition carries another op's index";
    if (op.name.empty() || op.summary.empty()) throw "an op without a name or a summary";
    if (op.dtypes.empty()) throw "an op that takes no dtype";
    if (!op.infer.has() || !op.reference.has()) throw "an op without a type rule or a reference meaning";
    if (!op.permute.has() && op.permute.reason().empty()) throw "a missing facet without a reason";
    if (!op.jvp.has() && op.jvp.reason().empty()) throw "a missing facet without a reason";
    if (!op.linear_transpose.has() && op.linear_transpose.reason().empty()) throw "a missing facet without a reason";
    if (op.refusals.rules().empty() && op.refusals.reason().empty())
      throw "an op without refusals and without a reason";
    for (const RefusalRule& rule : op.refusals.rules()) {
      if (rule.when.empty()) throw "a refusal that does not say when";
    }
    for (size_t j = 0; j < i; ++j) {
      if (kTable[j].name == op.name) throw "two ops of one name";
    }
  }
  return true;
}
static_assert(Audit());

}  // namespace

absl::Span<const OpDef> CoreOps() { return kTable; }

const OpDef& Def(CoreOp op) { return kTable[static_cast<size_t>(op)]; }

bool Is(const OpDef& def, CoreOp op) { return &def == &Def(op); }

const OpRegistry& CoreRegistry() {
  static const OpRegistry* const registry = [] {
    static constexpr absl::Span<const OpDef> kFamilies[] = {kTable};
    return new OpRegistry(kFamilies);
  }();
  return *registry;
}

}  // namespace tensord
