#ifndef TENSORD_SERVER_IDENTITY_ROLES_H_
#define TENSORD_SERVER_IDENTITY_ROLES_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::server {

// The role that a method asks of its caller: kExecute compiles, runs and keeps tensors, kRead looks at the server and
// its programs, kAdmin operates it. None includes another.
enum class Role : uint8_t { kExecute, kRead, kAdmin };

absl::string_view Name(Role role);

// The roles of a caller. A value.
class Roles {
 public:
  constexpr Roles() = default;  // none
  constexpr Roles(std::initializer_list<Role> roles) {
    for (const Role role : roles) bits_ = static_cast<uint8_t>(bits_ | Bit(role));
  }
  static constexpr Roles All() { return {Role::kExecute, Role::kRead, Role::kAdmin}; }

  // Parses "execute,read". INVALID_ARGUMENT for an unknown name, one that comes twice, and for an empty text.
  static absl::StatusOr<Roles> Parse(absl::string_view text);

  constexpr bool Has(Role role) const { return (bits_ & Bit(role)) != 0; }
  // Returns the text that Parse reads.
  std::string ToString() const;

  friend constexpr bool operator==(Roles a, Roles b) { return a.bits_ == b.bits_; }

 private:
  static constexpr uint8_t Bit(Role role) { return static_cast<uint8_t>(1 << static_cast<int>(role)); }

  uint8_t bits_ = 0;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_IDENTITY_ROLES_H_
