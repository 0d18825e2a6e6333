#include <string>

#include "absl/strings/match.h"
#include "server/identity/identity_table.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/require.h"

namespace tensord {

void FuzzIdentityTable(absl::string_view text) {
  const absl::StatusOr<server::IdentityTable> table = server::IdentityTable::Parse(text);
  if (!table.ok()) {
    Require(table.status().code() == absl::StatusCode::kInvalidArgument, "a refusal is INVALID_ARGUMENT");
    Require(absl::StartsWith(table.status().message(), "line "), "a refusal names the line");
    return;
  }
  const std::string again = std::string(text) + "\n\n# more\n";
  const absl::StatusOr<server::IdentityTable> same = server::IdentityTable::Parse(again);
  Require(same.ok() && same->size() == table->size(), "comments change nothing");
  Require(table->FindToken("") == nullptr || absl::StrContains(text, "e3b0c44298fc1c14"), "nobody is known by nothing");
  if (const server::Caller* caller = table->FindCertificate("cn:a")) {
    Require(server::IsTenantName(caller->tenant), "a caller's tenant has a name");
    Require(!(caller->roles == server::Roles()), "a caller has a role");
  }
}

}  // namespace tensord
