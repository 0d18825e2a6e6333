#include "server/rpc/wire/message_plan.h"

#include <iterator>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "engine/base/mutex.h"
#include "google/protobuf/any.pb.h"
#include "google/protobuf/message.h"
#include "proto/codec/family_messages.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Kind = FieldPlan::Kind;

constexpr FieldLimit kFieldLimits[] = {
#define TENSORD_FIELD_LIMIT(message, field, limit, scope, what) {message, field, limit, CountScope::scope, what},
#include "server/rpc/wire/field_limits.def"
#undef TENSORD_FIELD_LIMIT
};

// The cost of an allocation, and of a place in a list.
constexpr int64_t kAllocation = 16, kPlace = 8;

int RowOf(const FieldDescriptor& field) {
  for (size_t i = 0; i < std::size(kFieldLimits); ++i) {
    if (field.containing_type()->full_name() == kFieldLimits[i].message && field.name() == kFieldLimits[i].field) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

Kind KindOf(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_MESSAGE:
      return Kind::kMessage;
    case FieldDescriptor::TYPE_STRING:
      return Kind::kText;
    case FieldDescriptor::TYPE_BYTES: {
      const Descriptor* const type = field.containing_type();
      const bool is_data = type == v1::Tensor::descriptor() || type == v1::PutTensorRequest::Chunk::descriptor();
      return is_data ? Kind::kData : Kind::kText;
    }
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64:
      return Kind::kFixed64;
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return Kind::kFixed32;
    case FieldDescriptor::TYPE_GROUP:
      return Kind::kUnknown;
    default:
      return Kind::kVarint;
  }
}

int64_t ObjectBytes(const FieldDescriptor& field, Kind kind) {
  const int64_t place = field.is_repeated() ? kPlace : 0;
  switch (kind) {
    case Kind::kMessage: {
      const google::protobuf::Message* const prototype =
          google::protobuf::MessageFactory::generated_factory()->GetPrototype(field.message_type());
      return static_cast<int64_t>(prototype->SpaceUsedLong()) + kAllocation + place;
    }
    case Kind::kText:
    case Kind::kData:
      return static_cast<int64_t>(sizeof(std::string)) + kAllocation + place;
    default:
      return field.is_repeated() ? int64_t{sizeof(int64_t)} : 0;
  }
}

// All plans of the process.
class Plans {
 public:
  const MessagePlan& Of(const Descriptor& type) {
    MutexLock lock(&mutex_);
    return OfLocked(type);
  }

 private:
  const MessagePlan& OfLocked(const Descriptor& type) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::unique_ptr<MessagePlan>& plan = plans_[&type];
    if (plan != nullptr) return *plan;
    plan = std::make_unique<MessagePlan>();
    MessagePlan& made = *plan;  // there before those inside, which may hold it again
    made.type = &type;
    made.is_graph = &type == v1::Graph::descriptor();
    made.is_size_operation = &type == v1::BinaryDimExpr::descriptor();
    made.is_any = made.reaches_any = &type == google::protobuf::Any::descriptor();
    int slots = 0;
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const size_t number = static_cast<size_t>(field.number());
      if (made.fields.size() <= number) made.fields.resize(number + 1);
      FieldPlan planned{
          .field = &field, .kind = KindOf(field), .is_repeated = field.is_repeated(), .row = RowOf(field)};
      if (i < 64) planned.bit = uint64_t{1} << i;
      planned.object_bytes = ObjectBytes(field, planned.kind);
      const bool is_counted =
          planned.row >= 0 && kFieldLimits[static_cast<size_t>(planned.row)].scope == CountScope::kMessage;
      if (is_counted && slots < static_cast<int>(MessagePlan::kMostSlots)) planned.slot = slots++;
      if (planned.kind == Kind::kMessage) planned.inside = &OfLocked(*field.message_type());
      planned.may_repeat = planned.inside == nullptr || !planned.inside->reaches_any;
      if (!planned.may_repeat && !field.is_repeated()) made.reaches_any = true;
      made.fields[number] = planned;
    }
    return made;
  }

  Mutex mutex_;
  absl::flat_hash_map<const Descriptor*, std::unique_ptr<MessagePlan>> plans_ ABSL_GUARDED_BY(mutex_);
};

Plans& AllPlans() {
  static Plans* const plans = new Plans;  // outlives all that measure
  return *plans;
}

}  // namespace

absl::Span<const FieldLimit> AllFieldLimits() { return kFieldLimits; }

const MessagePlan& PlanOf(const Descriptor& type) {
  codec::LinkFamilyMessages();
  return AllPlans().Of(type);
}

}  // namespace tensord::server
