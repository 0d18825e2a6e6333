#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/cli/shell/command.h"
#include "google/protobuf/struct.pb.h"

namespace tensord::cli {
namespace {

constexpr size_t kTokenBytes = 32;
constexpr size_t kMostTenantBytes = 64;
// A prefix for tools that search texts for secrets.
constexpr char kTokenPrefix[] = "tensord_";

std::string HashOf(const std::string& token) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), sizeof(digest)));
}

// The rules of the server's file, which refuses the line otherwise.
bool IsTenantName(absl::string_view name) {
  return !name.empty() && name.size() <= kMostTenantBytes && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
  });
}

bool AreRoles(absl::string_view text) {
  std::set<absl::string_view> left = {"execute", "read", "admin"};
  const std::vector<absl::string_view> names = absl::StrSplit(text, ',');
  return std::all_of(names.begin(), names.end(), [&left](absl::string_view name) { return left.erase(name) == 1; });
}

int MakeToken(const Arguments& arguments, Console& console) {
  const std::string tenant = arguments.Value("tenant").value_or("default");
  const std::string roles = arguments.Value("roles").value_or("execute,read");
  if (!IsTenantName(tenant)) {
    return console.Usage("token", absl::StrCat("flag needs 1 to ", kMostTenantBytes,
                                               " letters, digits, '_', '.' and '-': --tenant=", tenant));
  }
  if (!AreRoles(roles)) {
    return console.Usage("token", absl::StrCat("flag needs some of execute, read and admin, each once, with commas "
                                               "between them: --roles=",
                                               roles));
  }
  unsigned char bytes[kTokenBytes];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) return console.Fail(absl::InternalError("there is no randomness"));
  const std::string token = absl::StrCat(
      kTokenPrefix, absl::WebSafeBase64Escape(absl::string_view(reinterpret_cast<const char*>(bytes), sizeof(bytes))));
  const std::string line = absl::StrCat(tenant, " ", roles, " ", HashOf(token));
  if (console.is_json()) {
    google::protobuf::Struct result;
    (*result.mutable_fields())["token"].set_string_value(token);
    (*result.mutable_fields())["line"].set_string_value(line);
    console.PrintJson(result);
  } else {
    console.out() << "token: " << token << "\nline: " << line << "\n";
  }
  return kExitOk;
}

}  // namespace

Command TokenCommand() {
  return {
      .name = "token",
      .operands = "",
      .summary = "Make a random token, and its line for the server's file of callers",
      .details =
          "The client keeps the token (TENSORD_TOKEN or --token-file); the line goes into the file that the "
          "server's setting "
          "identity.file names. The server learns the token's hash only. No server is asked.\n",
      .flags = {{.name = "tenant", .placeholder = "NAME", .help = "Whose calls they will be; default \"default\""},
                {.name = "roles", .placeholder = "ROLES", .help = "Of execute, read and admin; default execute,read"},
                {.name = "json", .help = "Print the result as JSON"}},
      .run = &MakeToken};
}

}  // namespace tensord::cli
