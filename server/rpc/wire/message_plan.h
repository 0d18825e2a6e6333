#ifndef TENSORD_SERVER_RPC_WIRE_MESSAGE_PLAN_H_
#define TENSORD_SERVER_RPC_WIRE_MESSAGE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/descriptor.h"

namespace tensord::server {

// The messages over which the elements of a list are counted.
enum class CountScope : uint8_t { kRequest, kMessage };

// A row of field_limits.def.
struct FieldLimit {
  absl::string_view message;
  absl::string_view field;
  absl::string_view limit;  // by the name that GetServerInfo gives it
  CountScope scope;
  absl::string_view what;
};
absl::Span<const FieldLimit> AllFieldLimits();

// The most items of each list of messages or strings in one request that has no row; GetServerInfo calls it
// message_items.
inline constexpr int64_t kMostItems = 65'536;

struct MessagePlan;

// Protobuf's object for one field of a message.
struct FieldPlan {
  enum class Kind : uint8_t { kUnknown, kVarint, kFixed32, kFixed64, kText, kData, kMessage };

  const google::protobuf::FieldDescriptor* field = nullptr;
  Kind kind = Kind::kUnknown;  // kData: bytes of tensors, no part of what graph_bytes counts
  bool is_repeated = false;
  uint64_t bit = 0;          // its own among those of its message
  int row = -1;              // of AllFieldLimits; -1: none
  int slot = -1;             // of its message's counts, where those are the row's scope
  int64_t object_bytes = 0;  // that each occurrence, or element, takes, but for the content of texts
  const MessagePlan* inside = nullptr;
  bool may_repeat = true;  // where it occurs once: pieces of a message are joined, but not where an Any is inside
};

// Protobuf's objects for the fields of a message type, by number. Lives as long as the process; constant.
struct MessagePlan {
  static constexpr size_t kMostSlots = 4;

  const google::protobuf::Descriptor* type = nullptr;
  bool is_graph = false;
  bool is_size_operation = false;
  bool is_any = false;
  bool reaches_any = false;       // through fields that occur once
  std::vector<FieldPlan> fields;  // by number; those between are unknown

  const FieldPlan* Find(uint32_t number) const {
    if (number >= fields.size() || fields[number].kind == FieldPlan::Kind::kUnknown) return nullptr;
    return &fields[number];
  }
};

// Returns the plan of a type of the process's own. Thread-safe.
const MessagePlan& PlanOf(const google::protobuf::Descriptor& type);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_WIRE_MESSAGE_PLAN_H_
