#ifndef TENSORD_ENGINE_TENSOR_RUN_TIME_SIZE_H_
#define TENSORD_ENGINE_TENSOR_RUN_TIME_SIZE_H_

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "engine/tensor/dim_expr.h"
#include "engine/tensor/tensor_type.h"

namespace tensord {

// Returns the symbol of a size that only the run decides, named after the node that decides it: "?y". No client can
// write such a symbol. Characters of the name other than [A-Za-z0-9_./] are written as ~ and two hexadecimal digits.
std::string RunTimeSymbol(absl::string_view node);
bool IsRunTimeSymbol(absl::string_view symbol);
// Returns the symbol at the begin of the text.
absl::string_view RunTimeSymbolPrefix(absl::string_view text);

// Tells whether the expression has such a symbol.
bool DependsOnRun(const DimExpr& size);

// Upper bounds of the sizes that the run decides, as expressions over ordinary symbols; nothing if unknown.
using RunTimeBounds = absl::flat_hash_map<std::string, std::optional<DimExpr>>;

// Returns the size with its extent. An expression that grows with every size that the run decides is bounded by their
// bounds, and exact if it has none; others (n - ?y) are unknown.
Dim WithExtent(DimExpr size, const RunTimeBounds& bounds);

}  // namespace tensord

#endif  // TENSORD_ENGINE_TENSOR_RUN_TIME_SIZE_H_
