#include "server/config/setting_comments.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "server/config/config_file.h"
#include "server/config/server_config_text.h"
#include "server/config/setting_options.h"

namespace tensord::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Comments = std::map<std::string, std::vector<std::string>>;

// "limits" of "optional Limits limits = 4;"; empty if the line declares no field.
absl::string_view FieldName(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  const bool declares = words.size() > 3 && (words[0] == "optional" || words[0] == "repeated") && words[3] == "=";
  return declares ? words[2] : absl::string_view();
}

class Printer {
 public:
  Printer() : comments_(CommentsOf(kServerConfigText)) {}

  std::string Print(const Message& message) {
    PrintFields(message, "", 0);
    return std::move(text_);
  }

 private:
  void PrintFields(const Message& message, const std::string& message_name, size_t indent) {
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *message.GetDescriptor()->field(i);
      const std::string space(indent, ' ');
      const std::string name(field.name());
      if (indent == 0 && i > 0) text_ += "\n";
      PrintComment(absl::StrCat(message_name, message_name.empty() ? "" : ".", name), space);
      if (field.is_repeated()) {
        absl::StrAppend(&text_, space, name, ": []", EndOf(field), "\n");  // none is set by default
      } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const std::string type(field.message_type()->name());
        PrintComment(type, space);
        absl::StrAppend(&text_, space, name, " {\n");
        PrintFields(message.GetReflection()->GetMessage(message, &field), type, indent + 2);
        absl::StrAppend(&text_, space, "}\n");
      } else {
        std::string value;
        google::protobuf::TextFormat::PrintFieldValueToString(message, &field, -1, &value);
        absl::StrAppend(&text_, space, name, ": ", value, EndOf(field), "\n");
      }
    }
  }

  static std::string EndOf(const FieldDescriptor& field) {
    std::vector<std::string> remarks = {PrintRange(field)};
    if (remarks.back().empty()) remarks.pop_back();
    if (field.options().GetExtension(reloads)) remarks.emplace_back("SIGHUP changes it");
    return remarks.empty() ? "" : absl::StrCat("  # ", absl::StrJoin(remarks, "; "));
  }

  void PrintComment(const std::string& of, const std::string& space) {
    const auto found = comments_.find(of);
    if (found == comments_.end()) return;
    for (const std::string& line : found->second)
      absl::StrAppend(&text_, space, "#", line.empty() ? "" : " ", line, "\n");
  }

  const Comments comments_;
  std::string text_;
};

}  // namespace

Comments CommentsOf(absl::string_view proto) {
  Comments comments;
  std::vector<std::string> messages;  // that the line is in, without the outermost
  std::vector<std::string> pending;
  bool in_outermost = false;
  for (const absl::string_view untrimmed : absl::StrSplit(proto, '\n')) {
    absl::string_view line = absl::StripAsciiWhitespace(untrimmed);
    if (absl::StartsWith(line, "//")) {
      line.remove_prefix(2);
      pending.emplace_back(absl::StartsWith(line, " ") ? line.substr(1) : line);
      continue;
    }
    if (absl::StartsWith(line, "message ")) {
      const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
      if (in_outermost) {
        messages.emplace_back(words[1]);
        if (!pending.empty()) comments[absl::StrJoin(messages, ".")] = pending;
      }
      in_outermost = true;
    } else if (line == "}" && !messages.empty()) {
      messages.pop_back();
    } else if (const absl::string_view field = FieldName(line); !field.empty() && !pending.empty()) {
      std::vector<std::string> path = messages;
      path.emplace_back(field);
      comments[absl::StrJoin(path, ".")] = pending;
    }
    pending.clear();
  }
  return comments;
}

std::string PrintDefaultConfig() { return Printer().Print(WithDefaults(ServerConfig())); }

}  // namespace tensord::server
