#ifndef TENSORD_ENGINE_OPS_DERIVATIVES_PRODUCT_OF_OTHERS_H_
#define TENSORD_ENGINE_OPS_DERIVATIVES_PRODUCT_OF_OTHERS_H_

#include "engine/ir/derivative_builder.h"
#include "engine/tensor/tensor_type.h"

namespace tensord {

// Factors in groups. All are vectors of the size `count`.
struct GroupedFactors {
  Dim count;
  ValueId factors;
  ValueId numbers;  // I64: 1, 2, 3, …
  ValueId groups;   // I64: between 0 and their count; the same for those of one group, and for no others
};

// Writes for each factor the product of all others in its group, without a division. Takes a few nodes for each bit of
// their count, of linear work each; derivatives of any order take likewise. Products are computed in a wider dtype, if
// there is one, which keeps them in range.
ValueId ProductOfOthers(DerivativeBuilder& graph, const GroupedFactors& of);

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_DERIVATIVES_PRODUCT_OF_OTHERS_H_
