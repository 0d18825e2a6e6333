#ifndef TENSORD_ENGINE_FAMILIES_LINALG_LINALG_OPS_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_LINALG_OPS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "engine/ir/op_def.h"

namespace tensord {

// The ops of the family "linalg", in the order of the messages of tensord/linalg/v1/linalg.proto.
enum class LinalgOp : uint16_t {
  kCholesky,
  kLu,
  kQr,
  kSvd,
  kSvdValues,
  kEigh,
  kEighValues,
  kEig,
  kEigValues,
  kSolve,
  kTriangularSolve,
  kInverse,
  kDeterminant,
  kSignLogDeterminant,
  kPseudoInverse,
  kLeastSquares,
  kMatrixRank,
  kHouseholderQr,
  kTriangularDeterminant,
  kEquilibrate,
};
inline constexpr int kNumLinalgOps = 20;

// Returns the definitions, indexed by LinalgOp.
absl::Span<const OpDef> LinalgOps();
const OpDef& Def(LinalgOp op);

// Tells whether a definition is that op of the family.
bool Is(const OpDef& def, LinalgOp op);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_LINALG_OPS_H_
