#ifndef TENSORD_CLIENTS_CLI_PROGRAMS_DTYPE_PROMOTION_H_
#define TENSORD_CLIENTS_CLI_PROGRAMS_DTYPE_PROMOTION_H_

#include "tensord/dtype.h"

namespace tensord::cli {

// Returns the dtype that holds the numbers of both, as NumPy's promote_types: F64 for integers with floats, C128 for
// integers or F64 with complex numbers, F32 for F16 with BF16.
client::DType PromotedDType(client::DType a, client::DType b);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_PROGRAMS_DTYPE_PROMOTION_H_
