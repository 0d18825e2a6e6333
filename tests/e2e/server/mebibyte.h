#ifndef TENSORD_TESTS_E2E_SERVER_MEBIBYTE_H_
#define TENSORD_TESTS_E2E_SERVER_MEBIBYTE_H_

#include <cstdint>

namespace tensord {

inline constexpr int64_t kMiB = int64_t{1} << 20;

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_MEBIBYTE_H_
