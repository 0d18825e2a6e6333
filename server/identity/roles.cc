#include "server/identity/roles.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tensord::server {
namespace {

constexpr Role kAllRoles[] = {Role::kExecute, Role::kRead, Role::kAdmin};

}  // namespace

absl::string_view Name(Role role) {
  switch (role) {
    case Role::kExecute:
      return "execute";
    case Role::kRead:
      return "read";
    case Role::kAdmin:
      break;
  }
  return "admin";
}

absl::StatusOr<Roles> Roles::Parse(absl::string_view text) {
  Roles roles;
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    const Roles before = roles;
    for (const Role role : kAllRoles) {
      if (name == Name(role)) roles.bits_ = static_cast<uint8_t>(roles.bits_ | Bit(role));
    }
    if (roles == before) {
      return absl::InvalidArgumentError("roles are execute, read and admin, each once, with commas between them");
    }
  }
  return roles;
}

std::string Roles::ToString() const {
  std::vector<absl::string_view> names;
  for (const Role role : kAllRoles) {
    if (Has(role)) names.push_back(Name(role));
  }
  return absl::StrJoin(names, ",");
}

}  // namespace tensord::server
