#ifndef TENSORD_TESTS_TESTLIB_PEERS_CLIENT_VALUES_H_
#define TENSORD_TESTS_TESTLIB_PEERS_CLIENT_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensord/error_detail.h"
#include "tensord/host_tensor.h"

namespace tensord {

inline client::HostTensor Floats(size_t count, float value) {
  return *client::HostTensor::FromVector(std::vector<float>(count, value), {static_cast<int64_t>(count)});
}

// Returns the reason of a refusal; for other errors the whole status.
inline std::string ReasonOf(const absl::Status& status) {
  const auto detail = client::GetErrorDetail(status);
  return detail.has_value() ? detail->reason : std::string(status.ToString());
}

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_PEERS_CLIENT_VALUES_H_
