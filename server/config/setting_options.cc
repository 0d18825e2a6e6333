#include "server/config/setting_options.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/config/flat_settings.h"

namespace tensord::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::FieldOptions;
using google::protobuf::Message;

int64_t MostOf(const FieldOptions& options) {
  return options.HasExtension(most) ? options.GetExtension(most) : std::numeric_limits<int64_t>::max();
}

int64_t IntegerOf(const Message& message, const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_INT32 ? message.GetReflection()->GetInt32(message, &field)
                                                            : message.GetReflection()->GetInt64(message, &field);
}

absl::Status CheckInteger(const std::string& path, int64_t value, const FieldOptions& options) {
  const int64_t from = options.GetExtension(least), to = MostOf(options);
  if (value >= from && value <= to) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("setting ", path, " must be between ", from, " and ", to, ", not ", value));
}

absl::Status CheckReal(const std::string& path, double value, const FieldOptions& options) {
  const int64_t from = options.GetExtension(least), to = MostOf(options);
  if (value >= static_cast<double>(from) && value <= static_cast<double>(to)) return absl::OkStatus();  // so is no NaN
  return absl::InvalidArgumentError(absl::StrCat("setting ", path, " is between ", from, " and ", to, ", not ", value));
}

absl::Status CheckText(const std::string& path, const std::string& value, const FieldOptions& options) {
  const int count = options.ExtensionSize(one_of);
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) texts.push_back(options.GetExtension(one_of, i));
  if (std::find(texts.begin(), texts.end(), value) != texts.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("setting ", path, count == 2 ? " is " : " is one of ",
                                                 absl::StrJoin(texts, count == 2 ? " or " : ", "), ", not \"", value,
                                                 "\""));
}

absl::Status CheckSetting(const std::string& path, const Message& message, const FieldDescriptor& field) {
  const FieldOptions& options = field.options();
  if (options.ExtensionSize(one_of) > 0) {
    return CheckText(path, message.GetReflection()->GetString(message, &field), options);
  }
  if (!options.HasExtension(least)) return absl::OkStatus();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
    return CheckReal(path, message.GetReflection()->GetDouble(message, &field), options);
  }
  return CheckInteger(path, IntegerOf(message, field), options);
}

}  // namespace

absl::Status CheckOptions(const ServerConfig& config) {
  absl::Status status;
  VisitSettings(config, [&](const std::string& path, const Message& message, const FieldDescriptor& field) {
    if (field.is_repeated() || !message.GetReflection()->HasField(message, &field)) return;
    status.Update(CheckSetting(path, message, field));
  });
  return status;
}

std::vector<ServerLimit> LimitSettings(const ServerConfig& config) {
  std::vector<ServerLimit> limits;
  VisitSettings(config, [&](const std::string& path, const Message& message, const FieldDescriptor& field) {
    if (!field.options().GetExtension(limit)) return;
    limits.push_back({std::string(absl::StripPrefix(path, "limits.")), IntegerOf(message, field)});
  });
  return limits;
}

std::string PrintRange(const FieldDescriptor& setting) {
  const FieldOptions& options = setting.options();
  if (!options.HasExtension(least)) return "";
  const int64_t from = options.GetExtension(least);
  return options.HasExtension(most) ? absl::StrCat(from, " to ", options.GetExtension(most))
                                    : absl::StrCat("at least ", from);
}

}  // namespace tensord::server
