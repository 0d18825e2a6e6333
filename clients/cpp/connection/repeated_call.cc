#include "clients/cpp/connection/repeated_call.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensord/error_detail.h"

namespace tensord::client {

bool MayHaveRun(const absl::Status& unavailable) {
  if (!ReasonOf(unavailable).empty()) return false;
  static constexpr absl::string_view kNotSent[] = {"failed to connect", "connections to all backends failing",
                                                   "name resolution",   "resolution failed",
                                                   "empty address",     "http 503"};
  const std::string message = absl::AsciiStrToLower(unavailable.message());
  return std::none_of(std::begin(kNotSent), std::end(kNotSent),
                      [&message](absl::string_view text) { return absl::StrContains(message, text); });
}

}  // namespace tensord::client
