#ifndef TENSORD_RESULT_PLAN_H_
#define TENSORD_RESULT_PLAN_H_

#include <cstdint>
#include <string>
#include <utility>

namespace tensord::client {

// The delivery of one of a program's results. A value.
struct ResultPlan {
  enum class Delivery : uint8_t { kReturn, kKeep, kBoth, kDiscard };

  static ResultPlan Return() { return {}; }
  // Keeps the result in the session under a handle that is new there, or one that the same call donates.
  static ResultPlan Keep(std::string handle) { return {Delivery::kKeep, std::move(handle)}; }
  // Stays, and is returned.
  static ResultPlan Both(std::string handle) { return {Delivery::kBoth, std::move(handle)}; }
  // Neither.
  static ResultPlan Discard() { return {Delivery::kDiscard, {}}; }

  bool is_kept() const { return delivery == Delivery::kKeep || delivery == Delivery::kBoth; }
  bool is_returned() const { return delivery == Delivery::kReturn || delivery == Delivery::kBoth; }

  Delivery delivery = Delivery::kReturn;
  std::string handle = {};
};

}  // namespace tensord::client

#endif  // TENSORD_RESULT_PLAN_H_
