#include "server/rpc/wire/message_measure.h"

#include <grpcpp/support/slice.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/any.pb.h"
#include "server/rpc/wire/message_plan.h"
#include "server/rpc/wire/slice_reader.h"

namespace tensord::server {
namespace {

using codec::GraphLimits;
using Kind = FieldPlan::Kind;

// No encoder writes more of either.
constexpr int64_t kMostRepeats = 1024;
constexpr int64_t kMostUnknown = 1024;
// Protobuf's own bound is 100; the content of an Any is read by itself.
constexpr int kMostDepth = 256;
constexpr int64_t kUnknownBytes = 64;

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kGroup = 3, kEndGroup = 4, kFixed32 = 5 };

// One message, which may be of many. Every step answers false if the walk is over: refused, or at bytes that
// protobuf does not read.
class Walk {
 public:
  Walk(absl::Span<const grpc::Slice> slices, const MessageBounds& bounds)
      : reader_(slices), bounds_(bounds), totals_(AllFieldLimits().size()) {}

  absl::StatusOr<MessageMeasure> Measure(const MessagePlan& plan) {
    Inside(plan, reader_.remaining(), 0);
    RETURN_IF_ERROR(refused_);
    return measure_;
  }

 private:
  // The counts of the message that is being read.
  struct Frame {
    uint64_t seen = 0;
    int64_t counts[MessagePlan::kMostSlots] = {};
  };
  // The content of an Any, once it was passed.
  struct Held {
    std::string url;
    SliceReader value;
    int64_t size = -1;
  };
  // The begin of the graph that is being read.
  struct GraphBegin {
    int64_t position = 0;
    int64_t data_bytes = 0;
  };

  bool Inside(const MessagePlan& plan, int64_t size, int depth) {
    if (depth > kMostDepth) return false;
    if (plan.is_any) return InsideAny(plan, size, depth);
    const std::optional<GraphBegin> outside = graph_;
    if (plan.is_size_operation) ++measure_.size_operations;
    if (plan.is_graph) graph_ = {.position = reader_.position(), .data_bytes = data_bytes_};
    const int64_t end = reader_.position() + size;
    Frame frame;
    while (reader_.position() < end) {
      if (!ReadField(plan, &frame, end, depth, nullptr)) return false;
    }
    graph_ = outside;
    return true;
  }

  bool ReadField(const MessagePlan& plan, Frame* frame, int64_t end, int depth, Held* held) {
    uint64_t tag = 0;
    int64_t length = 0;
    if (!reader_.ReadAnyVarint(&tag)) return false;
    const uint32_t number = static_cast<uint32_t>(tag) >> 3, type = static_cast<uint32_t>(tag) & 7;
    if (type == kLength && (!reader_.ReadAnyLength(&length) || length > end - reader_.position())) return false;
    const FieldPlan* const field = plan.Find(number);
    const bool is_known = field != nullptr && Matches(*field, type);
    if (held != nullptr && is_known) Note(number, length, held);
    if (!(is_known ? Known(frame, *field, type, length, depth) : Unknown(plan, number, type, length, depth))) {
      return false;
    }
    return !graph_.has_value() || CheckGraph();
  }

  // Reads an Any: its content is read when the graph is decoded.
  bool InsideAny(const MessagePlan& plan, int64_t size, int depth) {
    const int64_t end = reader_.position() + size;
    Frame frame;
    Held held{.value = reader_};
    while (reader_.position() < end) {
      if (!ReadField(plan, &frame, end, depth, &held)) return false;
    }
    const MessagePlan* const type = held.size < 0 ? nullptr : TypeOf(held.url);
    if (type == nullptr) return true;
    std::swap(reader_, held.value);
    Inside(*type, held.size, depth + 1);
    std::swap(reader_, held.value);
    return refused_.ok();
  }

  void Note(uint32_t number, int64_t length, Held* held) const {
    if (number == google::protobuf::Any::kTypeUrlFieldNumber) held->url = Text(reader_, length);
    if (number != google::protobuf::Any::kValueFieldNumber) return;
    held->value = reader_;
    held->size = length;
  }

  // Returns null if this build has no type of that name.
  const MessagePlan* TypeOf(const std::string& url) {
    const auto [type, is_new] = types_.try_emplace(url, nullptr);
    if (!is_new) return type->second;
    const auto* const found =
        google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(url.substr(url.rfind('/') + 1));
    if (found != nullptr) type->second = &PlanOf(*found);
    return type->second;
  }

  // Matches as protobuf reads: packed or not, but not as another type.
  static bool Matches(const FieldPlan& field, uint32_t type) {
    switch (field.kind) {
      case Kind::kVarint:
        return type == kVarint || (type == kLength && field.is_repeated);
      case Kind::kFixed32:
        return type == kFixed32 || (type == kLength && field.is_repeated);
      case Kind::kFixed64:
        return type == kFixed64 || (type == kLength && field.is_repeated);
      case Kind::kText:
      case Kind::kData:
      case Kind::kMessage:
        return type == kLength;
      case Kind::kUnknown:
        break;
    }
    return false;
  }

  bool Known(Frame* frame, const FieldPlan& field, uint32_t type, int64_t length, int depth) {
    int64_t count = 1;
    if (field.is_repeated && type == kLength) {
      if (field.kind == Kind::kVarint) count = CountVarints(length);
      if (field.kind == Kind::kFixed32) count = length / 4;
      if (field.kind == Kind::kFixed64) count = length / 8;
    }
    measure_.object_bytes += count * field.object_bytes;
    if (field.is_repeated ? !CountItems(frame, field, count) : !CountOnce(frame, field)) return false;
    switch (field.kind) {
      case Kind::kMessage:
        return Inside(*field.inside, length, depth + 1);
      case Kind::kData:
        data_bytes_ += length;
        return reader_.Skip(length);
      case Kind::kText:
        measure_.object_bytes += length;
        return reader_.Skip(length);
      default:
        return SkipValue(type, length);
    }
  }

  bool SkipValue(uint32_t type, int64_t length) {
    switch (type) {
      case kVarint:
        return reader_.SkipVarint();
      case kFixed64:
        return reader_.Skip(8);
      case kFixed32:
        return reader_.Skip(4);
      case kLength:
        return reader_.Skip(length);
      default:
        return false;
    }
  }

  bool Unknown(const MessagePlan& plan, uint32_t number, uint32_t type, int64_t length, int depth) {
    measure_.object_bytes += kUnknownBytes + length;
    if (++unknown_ > kMostUnknown) {
      return Refused(Refuse(
          Refusal::kUnsupportedRequest,
          absl::StrCat("this server does not know field ", number, " of ", plan.type->full_name(), ", and many more")));
    }
    return type == kGroup ? SkipGroup(plan, number, depth + 1) : SkipValue(type, length);
  }

  bool SkipGroup(const MessagePlan& plan, uint32_t number, int depth) {
    if (depth > kMostDepth) return false;
    while (true) {
      uint64_t tag = 0;
      int64_t length = 0;
      if (!reader_.ReadAnyVarint(&tag)) return false;
      const uint32_t inner = static_cast<uint32_t>(tag) >> 3, type = static_cast<uint32_t>(tag) & 7;
      if (type == kEndGroup) return inner == number;
      if (type == kLength && !reader_.ReadAnyLength(&length)) return false;
      if (!Unknown(plan, inner, type, length, depth)) return false;
    }
  }

  bool CountItems(Frame* frame, const FieldPlan& field, int64_t count) {
    const bool holds_objects = field.kind == Kind::kText || field.kind == Kind::kMessage;
    if (field.row < 0) {
      if (!holds_objects || (items_[&field] += count) <= kMostItems) return true;
      return Refused(
          RefuseLimit("message_items", kMostItems, items_[&field], absl::StrCat("elements of ", field.field->name())));
    }
    const size_t row = static_cast<size_t>(field.row);
    int64_t& counted = field.slot >= 0 ? frame->counts[field.slot] : totals_[row];
    counted += count;
    if (counted <= bounds_.lists[row]) return true;
    const FieldLimit& limit = AllFieldLimits()[row];
    return Refused(RefuseLimit(limit.limit, bounds_.lists[row], counted, limit.what));
  }

  bool CountOnce(Frame* frame, const FieldPlan& field) {
    if ((frame->seen & field.bit) == 0) {
      frame->seen |= field.bit;
      return true;
    }
    if (field.may_repeat && ++repeats_ <= kMostRepeats) return true;
    return Refused(Refuse(Refusal::kMalformedMessage,
                          absl::StrCat("the field ", field.field->full_name(), " is there more than once")));
  }

  // Checks the graph as far as it was read.
  bool CheckGraph() {
    const int64_t data = data_bytes_ - graph_->data_bytes;
    const int64_t rest = reader_.position() - graph_->position - data;
    if (rest <= bounds_.graph.graph_bytes && data <= bounds_.graph.constant_bytes) return true;
    absl::Status status =
        CheckLimit(bounds_.graph, &GraphLimits::graph_bytes, rest, "bytes of the graph without its constants");
    status.Update(CheckLimit(bounds_.graph, &GraphLimits::constant_bytes, data, "bytes of the graph's constants"));
    return Refused(std::move(status));
  }

  static std::string Text(SliceReader content, int64_t length) {
    constexpr int64_t kMostUrl = 512;  // whose end names the type
    std::vector<absl::string_view> pieces;
    std::string text;
    content.Skip(std::max<int64_t>(0, length - kMostUrl));
    content.ReadPieces(std::min(length, kMostUrl), &pieces);
    for (const absl::string_view piece : pieces) text.append(piece.data(), piece.size());
    return text;
  }

  // Counts the varints of a packed list, which stays to be read.
  int64_t CountVarints(int64_t length) const {
    SliceReader content = reader_;
    std::vector<absl::string_view> pieces;
    content.ReadPieces(length, &pieces);
    int64_t count = 0;
    for (const absl::string_view piece : pieces) {
      count += std::count_if(piece.begin(), piece.end(), [](char byte) { return (byte & 0x80) == 0; });
    }
    return count;
  }

  bool Refused(absl::Status status) {
    refused_ = std::move(status);
    return false;
  }

  SliceReader reader_;
  const MessageBounds& bounds_;
  std::vector<int64_t> totals_;                                 // by row
  absl::flat_hash_map<const FieldPlan*, int64_t> items_;        // of lists without one
  absl::flat_hash_map<std::string, const MessagePlan*> types_;  // that an Any named
  std::optional<GraphBegin> graph_;
  int64_t data_bytes_ = 0;
  MessageMeasure measure_;
  int64_t repeats_ = 0;
  int64_t unknown_ = 0;
  absl::Status refused_;
};

// Returns limits by row; null if the row's limit is none of a graph.
std::vector<codec::GraphLimit> GraphLimitsOfRows() {
  std::vector<codec::GraphLimit> limits;
  for (const FieldLimit& row : AllFieldLimits()) {
    limits.push_back(nullptr);
    for (const codec::GraphLimitInfo& limit : codec::AllGraphLimits()) {
      if (limit.name == row.limit) limits.back() = limit.value;
    }
  }
  return limits;
}

}  // namespace

MessageBounds BoundsOf(const GraphLimits& graph, const std::vector<ServerLimit>& server) {
  static const auto* const graph_limits = new std::vector<codec::GraphLimit>(GraphLimitsOfRows());
  MessageBounds bounds{.graph = graph};
  bounds.lists.reserve(graph_limits->size());
  for (size_t row = 0; row < graph_limits->size(); ++row) {
    int64_t value = kMostItems;
    if (const codec::GraphLimit limit = (*graph_limits)[row]; limit != nullptr) {
      value = graph.*limit;
    } else {
      for (const ServerLimit& other : server) {
        if (other.name == AllFieldLimits()[row].limit) value = other.value;
      }
    }
    bounds.lists.push_back(value);
  }
  return bounds;
}

absl::StatusOr<MessageMeasure> MeasureMessage(const grpc::ByteBuffer& bytes, const google::protobuf::Descriptor& type,
                                              const MessageBounds& bounds) {
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return MessageMeasure();  // which protobuf does not read either
  return Walk(slices, bounds).Measure(PlanOf(type));
}

}  // namespace tensord::server
