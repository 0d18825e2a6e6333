#include "engine/ops/semiring.h"

#include "absl/strings/str_cat.h"
#include "engine/ops/axis_checks.h"

namespace tensord {

absl::Status CheckElements(Algebra algebra, DType operands) {
  if (algebra == Algebra::kStandard) return absl::OkStatus();
  return CheckDType(operands, ElementsOf(algebra),
                    absl::StrCat("an element of the algebra ", kAlgebraNames[static_cast<size_t>(algebra)]));
}

}  // namespace tensord
