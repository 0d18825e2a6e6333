#include "server/identity/identity_table.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "server/identity/private_file.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxTenantBytes = 64;
constexpr size_t kMaxNameBytes = 2048;  // of a certificate; the most that SPIFFE allows

int DigitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool IsDigest(absl::string_view text) {
  return text.size() == 2 * SHA256_DIGEST_LENGTH &&
         std::all_of(text.begin(), text.end(), [](char c) { return DigitValue(c) >= 0; });
}

bool IsCertificateName(absl::string_view text) {
  if (text.size() > kMaxNameBytes) return false;
  for (const absl::string_view kind : {"spiffe://", "dns:", "cn:"}) {
    if (absl::StartsWith(text, kind)) return text.size() > kind.size();
  }
  return false;
}

}  // namespace

bool IsTenantName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxTenantBytes && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
  });
}

absl::StatusOr<IdentityTable> IdentityTable::Parse(absl::string_view text) {
  IdentityTable table;
  size_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view content = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (content.empty()) continue;
    const absl::Status added = table.AddLine(content);
    if (!added.ok()) return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", added.message()));
  }
  return table;
}

absl::StatusOr<IdentityTable> IdentityTable::Load(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadPrivateFile(path, FileSecrecy::kSecret));
  absl::StatusOr<IdentityTable> table = Parse(text);
  if (table.ok() && table->size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": names no caller; whoever is to call has a line"));
  }
  if (table.ok()) return table;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", table.status().message()));
}

absl::Status IdentityTable::AddLine(absl::string_view line) {
  if (size() == kMaxEntries) return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxEntries, " entries"));
  const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (fields.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("an entry is a tenant, roles and a credential, not ", fields.size(), " words"));
  }
  if (!IsTenantName(fields[0])) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tenant is 1 to ", kMaxTenantBytes, " letters, digits, '_', '.' and '-'"));
  }
  ASSIGN_OR_RETURN(const Roles roles, Roles::Parse(fields[1]));
  return AddCredential(fields[2], Caller{std::string(fields[0]), roles});
}

absl::Status IdentityTable::AddCredential(absl::string_view credential, Caller caller) {
  if (IsDigest(credential)) {
    Token token{{}, std::move(caller)};
    for (size_t i = 0; i < token.digest.size(); ++i) {
      token.digest[i] = static_cast<uint8_t>(DigitValue(credential[2 * i]) << 4 | DigitValue(credential[2 * i + 1]));
    }
    for (const Token& other : tokens_) {
      if (other.digest == token.digest) return absl::InvalidArgumentError("the token stands in an earlier line too");
    }
    tokens_.push_back(std::move(token));
    return absl::OkStatus();
  }
  if (!IsCertificateName(credential)) {
    return absl::InvalidArgumentError(
        "a credential is the SHA-256 of a token in 64 digits 0-9a-f, spiffe://…, dns:NAME or cn:NAME");
  }
  if (!certificates_.emplace(std::string(credential), std::move(caller)).second) {
    return absl::InvalidArgumentError("the certificate's name stands in an earlier line too");
  }
  return absl::OkStatus();
}

const Caller* IdentityTable::FindToken(absl::string_view token) const {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  const Caller* found = nullptr;
  for (const Token& entry : tokens_) {
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) found = &entry.caller;
  }
  return found;
}

const Caller* IdentityTable::FindCertificate(absl::string_view name) const {
  const auto found = certificates_.find(name);
  return found == certificates_.end() ? nullptr : &found->second;
}

size_t IdentityTable::num_tenants() const {
  absl::flat_hash_set<std::string> tenants;
  const auto add = [&tenants](const Caller& caller) {
    if (caller.roles.Has(Role::kExecute)) tenants.insert(caller.tenant);
  };
  for (const Token& token : tokens_) add(token.caller);
  for (const auto& [name, caller] : certificates_) add(caller);
  return tenants.size();
}

}  // namespace tensord::server
