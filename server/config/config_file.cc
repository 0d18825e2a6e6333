#include "server/config/config_file.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "engine/exec/program/program_passes.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "server/config/json_fields.h"
#include "server/config/regular_file.h"

namespace tensord::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

// Keeps the first error of a text, with its place.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (message_.empty()) message_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

absl::Status WrongValue(absl::string_view path, absl::string_view value, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("setting ", path, " takes ", expected, ", not \"", value, "\""));
}

absl::Status SetScalar(absl::string_view path, absl::string_view value, const FieldDescriptor& field,
                       Message* message) {
  const Reflection& reflection = *message->GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      if (field.is_repeated()) {
        reflection.AddString(message, &field, std::string(value));
      } else {
        reflection.SetString(message, &field, std::string(value));
      }
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_BOOL: {
      bool parsed = false;
      if (!absl::SimpleAtob(value, &parsed)) return WrongValue(path, value, "true or false");
      reflection.SetBool(message, &field, parsed);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_INT32: {
      int32_t parsed = 0;
      if (!absl::SimpleAtoi(value, &parsed)) return WrongValue(path, value, "a whole number");
      reflection.SetInt32(message, &field, parsed);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      int64_t parsed = 0;
      if (!absl::SimpleAtoi(value, &parsed)) return WrongValue(path, value, "a whole number");
      if (field.is_repeated()) {
        reflection.AddInt64(message, &field, parsed);
      } else {
        reflection.SetInt64(message, &field, parsed);
      }
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double parsed = 0;
      if (!absl::SimpleAtod(value, &parsed)) return WrongValue(path, value, "a number");
      reflection.SetDouble(message, &field, parsed);
      return absl::OkStatus();
    }
    default:
      return WrongValue(path, value, absl::StrCat("fields of its own, for example ", path, ".NAME"));
  }
}

// Gives every singular field its value, so that printing shows it.
void FillDefaults(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  const Descriptor& descriptor = *message->GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (field.is_repeated()) continue;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        FillDefaults(reflection.MutableMessage(message, &field));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        reflection.SetString(message, &field, reflection.GetString(*message, &field));
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        reflection.SetBool(message, &field, reflection.GetBool(*message, &field));
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        reflection.SetInt32(message, &field, reflection.GetInt32(*message, &field));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        reflection.SetInt64(message, &field, reflection.GetInt64(*message, &field));
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        reflection.SetDouble(message, &field, reflection.GetDouble(*message, &field));
        break;
      default:
        break;
    }
  }
}

const FieldDescriptor* FieldOfLimit(const codec::GraphLimitInfo& info) {
  return ServerConfig::Limits::descriptor()->FindFieldByName(std::string(info.name));
}

absl::Status CheckPasses(absl::string_view path, const google::protobuf::RepeatedPtrField<std::string>& names) {
  const absl::Status known = CheckPassNames(std::vector<std::string>(names.begin(), names.end()));
  if (known.ok()) return known;
  return absl::InvalidArgumentError(absl::StrCat("setting ", path, ": ", known.message()));
}

absl::Status CheckAccess(const ServerConfig& config) {
  const std::string& required = config.identity().required();
  if (required != "auto" && required != "on" && required != "off") {
    return absl::InvalidArgumentError(
        absl::StrCat("setting identity.required is one of auto, on, off, not \"", required, "\""));
  }
  const ServerConfig::Tls& tls = config.tls();
  if (tls.certificate().empty() != tls.key().empty()) {
    return absl::InvalidArgumentError("settings tls.certificate and tls.key go together: one of them is empty");
  }
  if (!tls.client_ca().empty() && tls.certificate().empty()) {
    return absl::InvalidArgumentError("setting tls.client_ca needs tls.certificate and tls.key");
  }
  if (tls.require_client_certificate() && tls.client_ca().empty()) {
    return absl::InvalidArgumentError("setting tls.require_client_certificate needs tls.client_ca");
  }
  if (required == "on" && config.identity().file().empty() && tls.client_ca().empty()) {
    return absl::InvalidArgumentError("setting identity.required needs identity.file or tls.client_ca");
  }
  const std::string& operators = config.admin().listen();
  if (!operators.empty() && !absl::StartsWith(operators, "unix:") && !RequiresIdentity(config)) {
    return absl::InvalidArgumentError(
        absl::StrCat("setting admin.listen is ", operators,
                     ", which every process of the machine can reach; name a unix socket, or set identity.file so that "
                     "callers say who they are"));
  }
  return absl::OkStatus();
}

// Tells whether a limit of 0 lets no graph through at all.
bool LetsNothingThrough(absl::string_view limit) {
  return limit == "dimension" || limit == "graph_bytes" || limit == "graph_nodes" || limit == "graph_outputs" ||
         limit == "name_bytes" || limit == "rank" || limit == "tensor_bytes";
}

// A default that nobody set is only shortened.
absl::Status CheckLeases(const ServerConfig::Sessions& sessions) {
  if (!sessions.has_default_lease_ms() || sessions.default_lease_ms() <= sessions.max_lease_ms()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("setting sessions.default_lease_ms, ", sessions.default_lease_ms(),
                                                 ", is at most sessions.max_lease_ms, which is ",
                                                 sessions.max_lease_ms()));
}

struct Range {
  std::string path;
  int64_t value;
  int64_t least;
  int64_t most;
};

}  // namespace

absl::Status MergeConfigText(absl::string_view text, ServerConfig* config) {
  ServerConfig parsed;
  const absl::string_view content = absl::StripLeadingAsciiWhitespace(text);
  if (!content.empty() && content[0] == '{') {
    const auto status = google::protobuf::util::JsonStringToMessage(std::string(content), &parsed,
                                                                    google::protobuf::util::JsonParseOptions());
    if (!status.ok()) return absl::InvalidArgumentError(status.message().ToString());
    RETURN_IF_ERROR(CheckFieldsAreOnce(content));
  } else {
    TextFormat::Parser parser;
    FirstError error;
    parser.RecordErrorsTo(&error);
    if (!parser.ParseFromString(std::string(text), &parsed)) return absl::InvalidArgumentError(error.message());
  }
  config->MergeFrom(parsed);
  return absl::OkStatus();
}

absl::Status MergeConfigFile(const std::string& path, ServerConfig* config) {
  const absl::StatusOr<RegularFile> read = ReadRegularFile(path);
  // Whatever its fault, the named file cannot be used.
  if (!read.ok()) return absl::InvalidArgumentError(read.status().message());
  const RegularFile& file = *read;
  // Editors that write a file in place empty it first. An empty configuration would put every setting back.
  if (file.content.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is empty; a configuration without settings has a comment"));
  }
  const absl::Status status = MergeConfigText(file.content, config);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::Status SetConfigField(absl::string_view assignment, ServerConfig* config) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(assignment, absl::MaxSplits('=', 1));
  if (!absl::StrContains(assignment, "=")) {
    return absl::InvalidArgumentError(absl::StrCat("\"", assignment, "\" is no path=value"));
  }
  const std::vector<std::string> path = absl::StrSplit(parts.first, '.');
  Message* message = config;
  for (size_t i = 0; i < path.size(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(path[i]);
    if (field == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no setting ", parts.first, "; --print-default-config shows all"));
    }
    if (i + 1 == path.size()) return SetScalar(parts.first, parts.second, *field, message);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      return absl::InvalidArgumentError(
          absl::StrCat("setting ", absl::StrJoin(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(i) + 1, "."),
                       " has no fields, in ", parts.first));
    }
    message = message->GetReflection()->MutableMessage(message, field);
  }
  return absl::InvalidArgumentError("a setting without a name");
}

bool RequiresIdentity(const ServerConfig& config) {
  const std::string& required = config.identity().required();
  if (required != "auto") return required == "on";
  return !config.identity().file().empty() || !config.tls().client_ca().empty();
}

absl::Status ValidateConfig(const ServerConfig& config) {
  constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLongestMs = int64_t{365} * 24 * 3600 * 1000;
  constexpr int64_t kMostConnections = 1'000'000;
  constexpr int64_t kMostCancels = 1'000'000;
  constexpr int64_t kMostTimerMs = int64_t{24} * 3600 * 1000;  // gRPC's are 32 bits wide
  constexpr int64_t kMostSizeSets = 1024;                      // which are looked at one after the other
  constexpr int64_t kMostPerSecond = 1000000;                  // a token's interval is a microsecond then
  std::vector<Range> ranges = {
      {"limits.message_bytes", config.limits().message_bytes(), 1024, std::numeric_limits<int32_t>::max()},
      {"limits.in_flight_bytes", config.limits().in_flight_bytes(), 1024, kUnlimited},
      {"limits.connections", config.limits().connections(), 1, kMostConnections},
      {"limits.connections_per_address", config.limits().connections_per_address(), -1, kMostConnections},
      {"limits.cancels_per_second", config.limits().cancels_per_second(), 1, kMostCancels},
      {"limits.handshake_timeout_ms", config.limits().handshake_timeout_ms(), 1, kMostTimerMs},
      {"limits.unread_ms", config.limits().unread_ms(), 0, kMostTimerMs},
      {"limits.connection_idle_ms", config.limits().connection_idle_ms(), -1, kMostTimerMs},
      {"limits.streams_per_connection", config.limits().streams_per_connection(), 1,
       std::numeric_limits<int32_t>::max()},
      {"limits.metadata_bytes", config.limits().metadata_bytes(), 1024, int64_t{1} << 24},
      {"limits.run_operations", config.limits().run_operations(), 1, kUnlimited},
      {"reload.check_files_ms", config.reload().check_files_ms(), 0, kLongestMs},
      {"limits.default_deadline_ms", config.limits().default_deadline_ms(), 1, kLongestMs},
      {"cpu.executors", config.cpu().executors(), 1, 1024},
      {"cpu.threads", config.cpu().threads(), 0, 1024},
      {"cpu.queue_length", config.cpu().queue_length(), 1, kUnlimited},
      {"cpu.pool_bytes", config.cpu().pool_bytes(), 0, kUnlimited},
      {"cpu.fft_table_bytes", config.cpu().fft_table_bytes(), 0, kUnlimited},
      {"cpu.niceness", config.cpu().niceness(), 0, 19},
      {"cpu.memory_bytes", config.cpu().memory_bytes(), -1, kUnlimited},
      {"cpu.chain_block_bytes", config.cpu().chain_block_bytes(), -1, kUnlimited},
      {"scheduling.max_priority", config.scheduling().max_priority(), -2, 2},
      {"scheduling.ageing_ms", config.scheduling().ageing_ms(), 1, kLongestMs},
      {"scheduling.tenant_queue_percent", config.scheduling().tenant_queue_percent(), 0, 100},
      {"scheduling.tenant_in_flight_percent", config.scheduling().tenant_in_flight_percent(), 0, 100},
      {"scheduling.tenant_unread_percent", config.scheduling().tenant_unread_percent(), 0, 100},
      {"scheduling.tenant_requests_per_second", config.scheduling().tenant_requests_per_second(), 0, kMostPerSecond},
      {"scheduling.tenant_burst", config.scheduling().tenant_burst(), 0, kMostPerSecond},
      {"scheduling.max_wait_ms", config.scheduling().max_wait_ms(), 0, kLongestMs},
      {"compiler.niceness", config.compiler().niceness(), 0, 19},
      {"compiler.threads", config.compiler().threads(), 1, 1024},
      {"compiler.queue_length", config.compiler().queue_length(), 1, kUnlimited},
      {"receive.queue_length", config.receive().queue_length(), 1, kUnlimited},
      {"program_cache.bytes", config.program_cache().bytes(), 0, kUnlimited},
      {"receive.pool_bytes", config.receive().pool_bytes(), 0, kUnlimited},
      {"sessions.count", config.sessions().count(), 0, kUnlimited},
      {"sessions.tenant_count", config.sessions().tenant_count(), 0, kUnlimited},
      {"sessions.handles", config.sessions().handles(), 0, kUnlimited},
      {"sessions.tenant_bytes", config.sessions().tenant_bytes(), -1, kUnlimited},
      {"sessions.device_bytes", config.sessions().device_bytes(), 0, kUnlimited},
      {"sessions.default_lease_ms", config.sessions().default_lease_ms(), 1, kLongestMs},
      {"sessions.max_lease_ms", config.sessions().max_lease_ms(), 1, kLongestMs},
      {"sessions.stream_requests", config.sessions().stream_requests(), 1, 1 << 20},
      {"sessions.stream_bytes", config.sessions().stream_bytes(), 1, kUnlimited},
      {"program_cache.disk_bytes", config.program_cache().disk_bytes(), 0, kUnlimited},
      {"program_cache.restore_ms", config.program_cache().restore_ms(), 0, kLongestMs},
      {"program_cache.size_sets", config.program_cache().size_sets(), 1, kMostSizeSets},
      {"program_cache.size_set_bytes", config.program_cache().size_set_bytes(), 0, kUnlimited},
      {"program_cache.negative_ms", config.program_cache().negative_ms(), 0, kLongestMs},
      {"shared_memory.region_bytes", config.shared_memory().region_bytes(), 0, kUnlimited},
      {"shared_memory.tenant_bytes", config.shared_memory().tenant_bytes(), -1, kUnlimited},
      {"shared_memory.bytes", config.shared_memory().bytes(), 0, kUnlimited},
      {"shared_memory.tenant_regions", config.shared_memory().tenant_regions(), 0, kUnlimited},
      {"shared_memory.connections", config.shared_memory().connections(), 1, 65536},
      {"drain.grace_ms", config.drain().grace_ms(), 0, kLongestMs},
      {"tracing.queue_spans", config.tracing().queue_spans(), 1, int64_t{1} << 24},
      {"tracing.batch_spans", config.tracing().batch_spans(), 1, int64_t{1} << 16},
      {"tracing.batch_ms", config.tracing().batch_ms(), 0, kLongestMs},
      {"tracing.timeout_ms", config.tracing().timeout_ms(), 1, kLongestMs},
      {"tracing.retry_ms", config.tracing().retry_ms(), 0, kLongestMs},
      {"tracing.segments", config.tracing().segments(), 0, 1024},
      {"flight_recorder.entries", config.flight_recorder().entries(), 0, int64_t{1} << 24},
      {"flight_recorder.slow_ms", config.flight_recorder().slow_ms(), 0, kLongestMs},
      {"drain.timeout_ms", config.drain().timeout_ms(), 0, kLongestMs},
  };
  const codec::GraphLimits limits = GraphLimitsOf(config);
  for (const codec::GraphLimitInfo& info : codec::AllGraphLimits()) {
    ranges.push_back(
        {absl::StrCat("limits.", info.name), limits.*info.value, LetsNothingThrough(info.name) ? 1 : 0, kUnlimited});
  }
  for (const Range& range : ranges) {
    if (range.value < range.least || range.value > range.most) {
      return absl::InvalidArgumentError(absl::StrCat("setting ", range.path, " must be between ", range.least, " and ",
                                                     range.most, ", not ", range.value));
    }
  }
  RETURN_IF_ERROR(CheckPasses("compiler.disabled_passes", config.compiler().disabled_passes()));
  RETURN_IF_ERROR(CheckPasses("compiler.enabled_passes", config.compiler().enabled_passes()));
  const std::pair<absl::string_view, absl::string_view> uses[] = {{"cpu.jit", config.cpu().jit()},
                                                                  {"cpu.epilogues", config.cpu().epilogues()}};
  for (const auto& [path, use] : uses) {
    if (use == "auto" || use == "on" || use == "off") continue;
    return absl::InvalidArgumentError(absl::StrCat("setting ", path, " is one of auto, on, off, not \"", use, "\""));
  }
  const std::string& order = config.warm_up().order();
  if (order != "row" && order != "column") {
    return absl::InvalidArgumentError(absl::StrCat("setting warm_up.order is row or column, not \"", order, "\""));
  }
  for (const int64_t uid : config.shared_memory().uids()) {
    if (uid < 0 || uid >= std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("setting shared_memory.uids has no number of a user: ", uid));
    }
  }
  RETURN_IF_ERROR(CheckLeases(config.sessions()));
  RETURN_IF_ERROR(CheckAccess(config));
  const double ratio = config.tracing().sample_ratio();
  if (!(ratio >= 0 && ratio <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("setting tracing.sample_ratio is between 0 and 1, not ", ratio));
  }
  const std::string& level = config.log().level();
  if (level != "debug" && level != "info" && level != "warning" && level != "error" && level != "off") {
    return absl::InvalidArgumentError(
        absl::StrCat("setting log.level is one of debug, info, warning, error, off, not \"", level, "\""));
  }
  return absl::OkStatus();
}

codec::GraphLimits GraphLimitsOf(const ServerConfig& config) {
  codec::GraphLimits limits;
  const Reflection& reflection = *config.limits().GetReflection();
  for (const codec::GraphLimitInfo& info : codec::AllGraphLimits()) {
    const FieldDescriptor* field = FieldOfLimit(info);
    if (field != nullptr && reflection.HasField(config.limits(), field)) {
      limits.*info.value = reflection.GetInt64(config.limits(), field);
    }
  }
  return limits;
}

ServerConfig WithDefaults(const ServerConfig& config) {
  ServerConfig full = config;
  FillDefaults(&full);
  const codec::GraphLimits limits = GraphLimitsOf(config);
  const Reflection& reflection = *full.limits().GetReflection();
  for (const codec::GraphLimitInfo& info : codec::AllGraphLimits()) {
    if (const FieldDescriptor* field = FieldOfLimit(info)) {
      reflection.SetInt64(full.mutable_limits(), field, limits.*info.value);
    }
  }
  return full;
}

std::string PrintConfig(const ServerConfig& config) {
  std::string text;
  TextFormat::PrintToString(WithDefaults(config), &text);
  return text;
}

}  // namespace tensord::server
