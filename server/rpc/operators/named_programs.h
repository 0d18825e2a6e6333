#ifndef TENSORD_SERVER_RPC_OPERATORS_NAMED_PROGRAMS_H_
#define TENSORD_SERVER_RPC_OPERATORS_NAMED_PROGRAMS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/fingerprint.h"
#include "engine/base/refusal.h"

namespace tensord::server {

// Returns the programs that an operator's request names, none if it is about all. MALFORMED_MESSAGE if it names some
// and all, or neither, or something that is no fingerprint; `what` is to be done with them.
template <typename Request>
absl::StatusOr<std::vector<Fingerprint>> NamedPrograms(const Request& request, absl::string_view what) {
  if (request.all() == (request.fingerprints_size() > 0)) {
    return Refuse(Refusal::kMalformedMessage, absl::StrCat("name the programs to ", what, ", or ask for all"));
  }
  std::vector<Fingerprint> named;
  for (const std::string& hex : request.fingerprints()) {
    const std::optional<Fingerprint> fingerprint = Fingerprint::FromHex(hex);
    if (!fingerprint.has_value()) {
      return Refuse(Refusal::kMalformedMessage, absl::StrCat("no fingerprint, which has 64 hexadecimal digits: \"",
                                                             absl::string_view(hex).substr(0, 64), "\""));
    }
    named.push_back(*fingerprint);
  }
  return named;
}

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_OPERATORS_NAMED_PROGRAMS_H_
