#include "server/tracing/tracer_options.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "server/identity/private_file.h"

namespace tensord::server {
namespace {

bool IsHeaderName(absl::string_view name) {
  // Names of gRPC are its own, and binary values are not text.
  if (name.empty() || absl::StartsWith(name, "grpc-") || absl::EndsWith(name, "-bin")) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return absl::ascii_islower(byte) || absl::ascii_isdigit(byte) || c == '-' || c == '_' || c == '.';
  });
}

bool IsHeaderValue(absl::string_view value) {
  return !value.empty() && std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// An address beginning with 127, and no name that does.
bool IsOnThisMachine(absl::string_view endpoint) {
  if (absl::StartsWith(endpoint, "127.")) {
    return endpoint.substr(0, endpoint.rfind(':')).find_first_not_of("0123456789.") == absl::string_view::npos;
  }
  return absl::StartsWith(endpoint, "unix:") || absl::StartsWith(endpoint, "localhost:") ||
         absl::StartsWith(endpoint, "[::1]:");
}

absl::Status Wrong(absl::string_view setting, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("setting tracing.", setting, ": ", why));
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsOf(const ServerConfig::Tracing& config) {
  if (!config.tls()) {
    if (!config.ca().empty()) return Wrong("ca", "needs tracing.tls");
    return grpc::InsecureChannelCredentials();
  }
  grpc::SslCredentialsOptions options;
  if (!config.ca().empty()) {
    ASSIGN_OR_RETURN(options.pem_root_certs, ReadPrivateFile(config.ca(), FileSecrecy::kPublic));
  }
  return grpc::SslCredentials(options);
}

}  // namespace

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseHeaders(absl::string_view text) {
  std::vector<std::pair<std::string, std::string>> headers;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view content = absl::StripAsciiWhitespace(line);
    if (content.empty() || content[0] == '#') continue;
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(content, absl::MaxSplits(':', 1));
    const std::string name = absl::AsciiStrToLower(absl::StripAsciiWhitespace(parts.first));
    const absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    // The line itself is not shown: it may hold a token.
    if (!IsHeaderName(name) || !IsHeaderValue(value)) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, " is no \"name: value\" of metadata"));
    }
    headers.emplace_back(name, std::string(value));
  }
  return headers;
}

absl::StatusOr<Tracer::Options> LoadTracerOptions(const ServerConfig::Tracing& config, absl::string_view version) {
  Tracer::Options options;
  options.sample_ratio = config.sample_ratio();
  options.queue_spans = config.queue_spans();
  options.segments = config.segments();
  OtlpExporter::Options& exporter = options.exporter;
  exporter.target = config.endpoint();
  if (!absl::StartsWith(exporter.target, "unix:") && !absl::StrContains(exporter.target, ":")) {
    return Wrong("endpoint", "is \"host:port\" or \"unix:/path\"");
  }
  exporter.is_local = IsOnThisMachine(exporter.target);
  ASSIGN_OR_RETURN(exporter.credentials, CredentialsOf(config));
  if (!config.headers().empty()) {
    if (!config.tls() && !IsOnThisMachine(config.endpoint())) {
      return Wrong("headers", "would leave this machine without encryption; set tracing.tls");
    }
    ASSIGN_OR_RETURN(const std::string text, ReadPrivateFile(config.headers(), FileSecrecy::kSecret));
    auto headers = ParseHeaders(text);
    if (!headers.ok()) return Wrong("headers", headers.status().message());
    exporter.metadata = *std::move(headers);
  }
  exporter.service_name = config.service_name();
  exporter.version = std::string(version);
  exporter.batch_spans = config.batch_spans();
  exporter.batch_wait = absl::Milliseconds(config.batch_ms());
  exporter.timeout = absl::Milliseconds(config.timeout_ms());
  exporter.retry = absl::Milliseconds(config.retry_ms());
  return options;
}

}  // namespace tensord::server
