#ifndef TENSORD_TESTS_TESTLIB_REASON_OF_H_
#define TENSORD_TESTS_TESTLIB_REASON_OF_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/refusal.h"

namespace tensord {

// The reason id of a refusal; empty for any other status, OK too.
inline std::string ReasonOf(const absl::Status& status) { return DetailOf(status).value_or(RefusalDetail{}).reason; }
template <typename T>
std::string ReasonOf(const absl::StatusOr<T>& result) {
  return ReasonOf(result.status());
}

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_REASON_OF_H_
