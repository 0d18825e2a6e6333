#ifndef TENSORD_ENGINE_IR_LITERAL_TEXT_H_
#define TENSORD_ENGINE_IR_LITERAL_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/ir/text_cursor.h"
#include "engine/tensor/literal.h"
#include "engine/tensor/tensor_type.h"

namespace tensord {

// The text form of tensors and types.
//
// A literal is its type and its elements in column-major order: `f32[2,1] [1.5, -inf]`, `c64[] [(1, 2)]`, `bool[1]
// [true]`. Decimals are the shortest that read back as the same number. A literal of more than kMaxDecimals elements,
// or one with a NaN that is not the usual quiet positive one, is its bytes in hexadecimal: `f32[1] hex "010080ff"`.
inline constexpr int64_t kMaxDecimals = 64;

std::string LiteralText(const Literal& literal);
// Allocates nothing for a shape that the elements do not fill.
absl::StatusOr<Literal> ParseLiteral(TextCursor& cursor);

// Parses `f32[n,2*m]`, the form of ToString(type). Sizes that the run decides, `?y<=n`, only if they are allowed.
absl::StatusOr<TensorType> ParseType(TextCursor& cursor, bool run_time_sizes = false);

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_LITERAL_TEXT_H_
