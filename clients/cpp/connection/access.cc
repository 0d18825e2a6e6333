#include "tensord/access.h"

#include <cstdlib>
#include <fstream>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "grpcpp/security/credentials.h"

namespace tensord::client {
namespace {

constexpr size_t kMostBytes = size_t{4} << 20;  // all that a system trusts is a tenth of it

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::Status ReadFile(const std::string& path, std::string* content) {
  if (path.empty()) return absl::OkStatus();
  std::ifstream file(path, std::ios::binary);
  content->resize(kMostBytes + 1);
  file.read(content->data(), static_cast<std::streamsize>(content->size()));
  content->resize(static_cast<size_t>(file.gcount()));
  if (content->size() > kMostBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " has more than ", kMostBytes, " bytes, which no certificates and no token have"));
  }
  if (!file.is_open() || file.bad() || content->empty()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  }
  return absl::OkStatus();
}

// "127.0.0.1", and no name that begins so.
bool IsLoopbackAddress(absl::string_view host) {
  return absl::StartsWith(host, "127.") && host.find_first_not_of("0123456789.") == absl::string_view::npos;
}

absl::Status SetTls(const Access& access, ConnectOptions* options) {
  grpc::SslCredentialsOptions tls;
  absl::Status read = ReadFile(access.ca_file, &tls.pem_root_certs);
  if (read.ok()) read = ReadFile(access.certificate_file, &tls.pem_cert_chain);
  if (read.ok()) read = ReadFile(access.key_file, &tls.pem_private_key);
  if (!read.ok()) return read;
  if (tls.pem_cert_chain.empty() != tls.pem_private_key.empty()) {
    return absl::InvalidArgumentError("a client's certificate and its key go together: one of them is missing");
  }
  options->credentials = grpc::SslCredentials(tls);
  return absl::OkStatus();
}

}  // namespace

bool IsLocal(absl::string_view target) {
  if (target.empty() || absl::StartsWith(target, "unix:") || absl::StartsWith(target, "unix-abstract:")) return true;
  if (const size_t scheme = target.find(":///"); scheme != absl::string_view::npos) target.remove_prefix(scheme + 4);
  if (absl::StartsWith(target, "localhost:") || absl::StartsWith(target, "[::1]:")) return true;
  return IsLoopbackAddress(target.substr(0, target.rfind(':')));
}

Access AccessFromEnvironment() {
  return {.tls = Variable("TENSORD_TLS") == "1",
          .ca_file = Variable("TENSORD_CA_FILE"),
          .certificate_file = Variable("TENSORD_CERTIFICATE_FILE"),
          .key_file = Variable("TENSORD_KEY_FILE"),
          .token = Variable("TENSORD_TOKEN"),
          .token_file = Variable("TENSORD_TOKEN_FILE")};
}

absl::Status SetAccess(const Access& access, ConnectOptions* options) {
  const bool tls =
      access.tls || !access.ca_file.empty() || !access.certificate_file.empty() || !access.key_file.empty();
  if (tls) {
    const absl::Status set = SetTls(access, options);
    if (!set.ok()) return set;
  }
  if (!access.token.empty() && !access.token_file.empty()) {
    return absl::InvalidArgumentError("a token and the file of a token are given: which is it?");
  }
  std::string token = access.token;
  const absl::Status read = ReadFile(access.token_file, &token);
  if (!read.ok()) return read;
  absl::StripAsciiWhitespace(&token);
  if (token.empty()) return absl::OkStatus();
  if (options->credentials == nullptr && !IsLocal(options->target)) {
    return absl::InvalidArgumentError(absl::StrCat("the token would travel in plain text to ", options->target,
                                                   "; use TLS, or put it into the metadata yourself"));
  }
  options->metadata.emplace_back("authorization", absl::StrCat("Bearer ", token));
  return absl::OkStatus();
}

}  // namespace tensord::client
