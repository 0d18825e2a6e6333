#include "clients/cli/shell/json_text.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "google/protobuf/util/time_util.h"

namespace tensord::cli {
namespace {

using google::protobuf::Duration;
using google::protobuf::FieldDescriptor;
using google::protobuf::ListValue;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::Struct;
using google::protobuf::Timestamp;
using google::protobuf::Value;
using google::protobuf::util::TimeUtil;

// Readers keep numbers as doubles, which hold all integers up to here.
constexpr int64_t kMostExact = int64_t{1} << 53;

// Returns the bytes of the character of UTF-8 that a text begins with; 0 if there is none, or it has more bytes than it
// needs, or is half of a pair or too large.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t size = byte(0) < 0x80 ? 1 : byte(0) < 0xC2 ? 0 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  if (size == 0 || size > text.size() || byte(0) > 0xF4) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (byte(0) == 0xE0 && byte(1) < 0xA0) return 0;
  if (byte(0) == 0xED && byte(1) > 0x9F) return 0;
  if (byte(0) == 0xF0 && byte(1) < 0x90) return 0;
  if (byte(0) == 0xF4 && byte(1) > 0x8F) return 0;
  return size;
}

std::string JsonString(absl::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const size_t size = CharacterBytes(text);
    const char first = text.front();
    if (size == 0) {
      absl::StrAppend(&quoted, "\\ufffd");
    } else if (first == '"' || first == '\\') {
      absl::StrAppend(&quoted, "\\", text.substr(0, 1));
    } else if (first == '\n') {
      absl::StrAppend(&quoted, "\\n");
    } else if (size == 1 && (static_cast<unsigned char>(first) < 0x20 || first == 0x7F)) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<unsigned>(first));
    } else {
      absl::StrAppend(&quoted, text.substr(0, size));
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return quoted + "\"";
}

std::string IntegerText(int64_t value) {
  return value > kMostExact || value < -kMostExact ? JsonString(absl::StrCat(value)) : absl::StrCat(value);
}

std::string UnsignedText(uint64_t value) {
  return value > static_cast<uint64_t>(kMostExact) ? JsonString(absl::StrCat(value)) : absl::StrCat(value);
}

// Returns the shortest text that is read as the same value.
template <typename Real>
std::string RealText(Real value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  const double wide = static_cast<double>(value);
  if (wide == 0 && std::signbit(wide)) return "-0.0";  // readers take "-0" for an integer
  if (wide == std::floor(wide) && std::abs(wide) <= static_cast<double>(kMostExact)) {
    return absl::StrCat(static_cast<int64_t>(wide));
  }
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end.ptr);
}

class JsonWriter {
 public:
  explicit JsonWriter(JsonLayout layout) : is_indented_(layout == JsonLayout::kIndented) {}

  void Write(const Message& message) {
    // The messages that have a form of their own.
    if (const auto* known = google::protobuf::DynamicCastToGenerated<Struct>(&message)) return Write(*known);
    if (const auto* known = google::protobuf::DynamicCastToGenerated<ListValue>(&message)) return Write(*known);
    if (const auto* known = google::protobuf::DynamicCastToGenerated<Value>(&message)) return Write(*known);
    if (const auto* known = google::protobuf::DynamicCastToGenerated<Duration>(&message)) {
      return Append(JsonString(TimeUtil::ToString(*known)));
    }
    if (const auto* known = google::protobuf::DynamicCastToGenerated<Timestamp>(&message)) {
      return Append(JsonString(TimeUtil::ToString(*known)));
    }
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    Begin("{");
    for (const FieldDescriptor* field : fields) {
      Key(field->name());
      WriteField(message, *field);
    }
    End("}");
  }

  std::string Take() && { return std::move(text_); }

 private:
  void Append(absl::string_view text) { absl::StrAppend(&text_, text); }
  void NewLine() {
    if (is_indented_) absl::StrAppend(&text_, "\n", std::string(depth_, ' '));
  }
  void Begin(absl::string_view bracket) {
    Append(bracket);
    ++depth_;
    is_empty_ = true;
  }
  void Next() {
    if (!is_empty_) Append(",");
    is_empty_ = false;
    NewLine();
  }
  void Key(absl::string_view name) {
    Next();
    absl::StrAppend(&text_, JsonString(name), is_indented_ ? ": " : ":");
  }
  void End(absl::string_view bracket) {
    --depth_;
    if (!is_empty_) NewLine();
    Append(bracket);
    is_empty_ = false;
  }

  void Write(const Struct& object) {
    const std::map<std::string, Value> sorted(object.fields().begin(), object.fields().end());
    Begin("{");
    for (const auto& [name, value] : sorted) {
      Key(name);
      Write(value);
    }
    End("}");
  }
  void Write(const ListValue& list) {
    Begin("[");
    for (const Value& value : list.values()) {
      Next();
      Write(value);
    }
    End("]");
  }
  void Write(const Value& value) {
    switch (value.kind_case()) {
      case Value::kNumberValue:
        return Append(RealText(value.number_value()));
      case Value::kStringValue:
        return Append(JsonString(value.string_value()));
      case Value::kBoolValue:
        return Append(value.bool_value() ? "true" : "false");
      case Value::kStructValue:
        return Write(value.struct_value());
      case Value::kListValue:
        return Write(value.list_value());
      case Value::kNullValue:
      case Value::KIND_NOT_SET:
        return Append("null");
    }
  }

  void WriteField(const Message& message, const FieldDescriptor& field) {
    if (!field.is_repeated()) return WriteOne(message, field, -1);
    Begin("[");
    for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
      Next();
      WriteOne(message, field, i);
    }
    End("]");
  }

  // Writes a field's value; `index` is the place in a repeated field, -1 for a singular one.
  void WriteOne(const Message& message, const FieldDescriptor& field, int index) {
    const Reflection& reflection = *message.GetReflection();
    const auto get = [&](auto of_one, auto of_many) {
      return index < 0 ? (reflection.*of_one)(message, &field) : (reflection.*of_many)(message, &field, index);
    };
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return Append(IntegerText(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32)));
      case FieldDescriptor::CPPTYPE_INT64:
        return Append(IntegerText(get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64)));
      case FieldDescriptor::CPPTYPE_UINT32:
        return Append(UnsignedText(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32)));
      case FieldDescriptor::CPPTYPE_UINT64:
        return Append(UnsignedText(get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64)));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return Append(RealText(get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat)));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return Append(RealText(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble)));
      case FieldDescriptor::CPPTYPE_BOOL:
        return Append(get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false");
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int number = get(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue);
        const auto* value = field.enum_type()->FindValueByNumber(number);
        return Append(value == nullptr ? absl::StrCat(number) : JsonString(value->name()));
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = get(&Reflection::GetString, &Reflection::GetRepeatedString);
        const bool is_bytes = field.type() == FieldDescriptor::TYPE_BYTES;
        return Append(JsonString(is_bytes ? absl::Base64Escape(text) : text));
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Write(index < 0 ? reflection.GetMessage(message, &field)
                               : reflection.GetRepeatedMessage(message, &field, index));
    }
  }

  const bool is_indented_;
  std::string text_;
  size_t depth_ = 0;
  bool is_empty_ = true;  // the object or list that is being written
};

}  // namespace

std::string JsonText(const google::protobuf::Message& message, JsonLayout layout) {
  JsonWriter writer(layout);
  writer.Write(message);
  return std::move(writer).Take() + "\n";
}

}  // namespace tensord::cli
