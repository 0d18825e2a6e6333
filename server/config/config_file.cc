#include "server/config/config_file.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
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
#include "proto/command_line/nearest_name.h"
#include "proto/command_line/size.h"
#include "server/config/device_names.h"
#include "server/config/flat_settings.h"
#include "server/config/json_fields.h"
#include "server/config/regular_file.h"
#include "server/config/setting_options.h"

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

// Returns the end of a message on a setting that does not exist: the setting of another group with that name, or the
// nearest name; empty if there is neither.
std::string MeantSetting(absl::string_view path) {
  const std::vector<std::string> settings = AllSettings();
  for (const std::string& setting : settings) {
    if (!path.empty() && absl::EndsWith(setting, absl::StrCat(".", path))) {
      return absl::StrCat("; did you mean ", setting, "?");
    }
  }
  return wire::DidYouMean(path, settings);
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
      const bool has_unit = field.options().GetExtension(in_bytes);
      const std::optional<int64_t> size = has_unit ? wire::ParseSize(value) : std::nullopt;
      if (!size.has_value() && !absl::SimpleAtoi(value, &parsed)) {
        return WrongValue(path, value, has_unit ? "bytes, for example 2147483648, 2Gi or 2G" : "a whole number");
      }
      parsed = size.value_or(parsed);
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
  if (config.identity().required() == "on" && config.identity().file().empty() && tls.client_ca().empty()) {
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

// A default that nobody set is only shortened.
absl::Status CheckLeases(const ServerConfig::Sessions& sessions) {
  if (!sessions.has_default_lease_ms() || sessions.default_lease_ms() <= sessions.max_lease_ms()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("setting sessions.default_lease_ms, ", sessions.default_lease_ms(),
                                                 ", is at most sessions.max_lease_ms, which is ",
                                                 sessions.max_lease_ms()));
}

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
      const std::string meant = MeantSetting(parts.first);
      return absl::InvalidArgumentError(absl::StrCat("there is no setting ", parts.first,
                                                     meant.empty() ? "; --print-default-config shows all" : meant));
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
  RETURN_IF_ERROR(CheckOptions(config));
  RETURN_IF_ERROR(CheckPasses("compiler.disabled_passes", config.compiler().disabled_passes()));
  RETURN_IF_ERROR(CheckPasses("compiler.enabled_passes", config.compiler().enabled_passes()));
  for (const int64_t uid : config.shared_memory().uids()) {
    if (uid < 0 || uid >= std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("setting shared_memory.uids has no number of a user: ", uid));
    }
  }
  RETURN_IF_ERROR(DevicesOf(config).status());
  RETURN_IF_ERROR(CheckLeases(config.sessions()));
  RETURN_IF_ERROR(CheckAccess(config));
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
