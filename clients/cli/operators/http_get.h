#ifndef TENSORD_CLIENTS_CLI_OPERATORS_HTTP_GET_H_
#define TENSORD_CLIENTS_CLI_OPERATORS_HTTP_GET_H_

#include <atomic>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tensord::cli {

// Returns the body of a page, by plain HTTP/1.0: GetPage("localhost:9464", "/metrics", absl::Seconds(5)). UNAVAILABLE
// if the page does not come whole within the time, NOT_FOUND and the like as the server answers, CANCELLED soon after
// another thread has set `is_given_up`.
absl::StatusOr<std::string> GetPage(absl::string_view address, absl::string_view path, absl::Duration timeout,
                                    const std::atomic<bool>* is_given_up = nullptr);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_OPERATORS_HTTP_GET_H_
