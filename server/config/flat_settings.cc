#include "server/config/flat_settings.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/field_mask.pb.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/field_mask_util.h"
#include "server/config/config_file.h"

namespace tensord::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::FieldMaskUtil;

// Returns all values of a field, printed.
std::string Printed(const Message& message, const FieldDescriptor& field) {
  std::string text, value;
  const int count = field.is_repeated() ? message.GetReflection()->FieldSize(message, &field) : 1;
  for (int i = 0; i < count; ++i) {
    google::protobuf::TextFormat::PrintFieldValueToString(message, &field, field.is_repeated() ? i : -1, &value);
    absl::StrAppend(&text, value, "\n");
  }
  return text;
}

void AddChanges(const Message& before, const Message& after, const std::string& prefix,
                std::vector<std::string>* paths) {
  for (int i = 0; i < before.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *before.GetDescriptor()->field(i);
    const std::string path = absl::StrCat(prefix, std::string(field.name()));
    if (!field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      AddChanges(before.GetReflection()->GetMessage(before, &field), after.GetReflection()->GetMessage(after, &field),
                 path + ".", paths);
    } else if (Printed(before, field) != Printed(after, field)) {
      paths->push_back(path);
    }
  }
}

void Visit(const Message& message, const std::string& prefix, SettingVisitor visit) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    const std::string path = absl::StrCat(prefix, std::string(field.name()));
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Visit(message.GetReflection()->GetMessage(message, &field), path + ".", visit);
    } else {
      visit(path, message, field);
    }
  }
}

}  // namespace

void VisitSettings(const ServerConfig& config, SettingVisitor visit) { Visit(config, "", visit); }

std::vector<std::string> AllSettings() {
  std::vector<std::string> paths;
  VisitSettings(ServerConfig(),
                [&paths](const std::string& path, const Message&, const FieldDescriptor&) { paths.push_back(path); });
  return paths;
}

bool Reloads(absl::string_view path) {
  std::vector<const FieldDescriptor*> fields;
  if (!FieldMaskUtil::GetFieldDescriptors(ServerConfig::descriptor(), std::string(path), &fields)) return false;
  return fields.back()->options().GetExtension(reloads);
}

std::vector<std::string> ChangedSettings(const ServerConfig& before, const ServerConfig& after) {
  std::vector<std::string> paths;
  AddChanges(WithDefaults(before), WithDefaults(after), "", &paths);
  return paths;
}

bool CopySetting(absl::string_view path, const ServerConfig& from, ServerConfig* to) {
  google::protobuf::FieldMask mask;
  mask.add_paths(std::string(path));
  if (!FieldMaskUtil::IsValidPath<ServerConfig>(mask.paths(0))) return false;
  FieldMaskUtil::MergeOptions options;
  options.set_replace_message_fields(true);
  options.set_replace_repeated_fields(true);
  FieldMaskUtil::MergeMessageTo(WithDefaults(from), mask, options, to);
  return true;
}

}  // namespace tensord::server
