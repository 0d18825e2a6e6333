#ifndef TENSORD_SERVER_IDENTITY_IDENTITY_TABLE_H_
#define TENSORD_SERVER_IDENTITY_IDENTITY_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/identity/caller.h"

namespace tensord::server {

// The callers that the server knows by a token or by the name in a certificate. Immutable, so thread-safe.
//
// Its text has one a line, "#" begins a comment:
//
//   TENANT ROLES CREDENTIAL
//   team-a execute,read 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//   team-b execute      spiffe://example.org/team-b
//   ops    read,admin   dns:ops.example.org
//
// The credential is the SHA-256 of a token, in 64 hexadecimal digits, or a name of a client's certificate: a SPIFFE ID,
// dns:NAME or cn:NAME.
class IdentityTable {
 public:
  static constexpr size_t kMaxEntries = 10'000;

  // Parses a table. INVALID_ARGUMENT names the line, and never repeats its text: it may be a token.
  static absl::StatusOr<IdentityTable> Parse(absl::string_view text);
  // Reads a file, which must be private. INVALID_ARGUMENT names it.
  static absl::StatusOr<IdentityTable> Load(const std::string& path);

  // Returns the owner of that token; null: nobody. Takes as long for every token.
  const Caller* FindToken(absl::string_view token) const;
  // Returns the owner of a certificate with that name, "spiffe://…", "dns:…" or "cn:…"; null: nobody.
  const Caller* FindCertificate(absl::string_view name) const;

  // Tenants that may run programs.
  size_t num_tenants() const;
  size_t size() const { return tokens_.size() + certificates_.size(); }

 private:
  using Digest = std::array<uint8_t, 32>;
  struct Token {
    Digest digest;
    Caller caller;
  };

  absl::Status AddLine(absl::string_view line);
  absl::Status AddCredential(absl::string_view credential, Caller caller);

  std::vector<Token> tokens_;
  absl::flat_hash_map<std::string, Caller> certificates_;
};

// Tells whether a text may be a tenant's name: 1 to 64 of A-Z a-z 0-9 _ . and -, so that it fits everywhere.
bool IsTenantName(absl::string_view name);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_IDENTITY_IDENTITY_TABLE_H_
