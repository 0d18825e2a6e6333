#ifndef TENSORD_SERVER_SESSIONS_TENSOR_END_H_
#define TENSORD_SERVER_SESSIONS_TENSOR_END_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace tensord::server {

enum class TensorEnd : uint8_t {
#define TENSORD_TENSOR_END(member, name, help) member,
#include "server/sessions/tensor_ends.def"
#undef TENSORD_TENSOR_END
};

inline constexpr absl::string_view kTensorEndNames[] = {
#define TENSORD_TENSOR_END(member, name, help) name,
#include "server/sessions/tensor_ends.def"
#undef TENSORD_TENSOR_END
};

inline constexpr size_t kNumTensorEnds = sizeof(kTensorEndNames) / sizeof(kTensorEndNames[0]);

// Counts by end.
using TensorEnds = std::array<int64_t, kNumTensorEnds>;

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SESSIONS_TENSOR_END_H_
