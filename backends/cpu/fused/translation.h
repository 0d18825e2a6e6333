#ifndef TENSORD_BACKENDS_CPU_FUSED_TRANSLATION_H_
#define TENSORD_BACKENDS_CPU_FUSED_TRANSLATION_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "backends/cpu/fused/plan.h"
#include "backends/cpu/jit/program.h"

namespace tensord::cpu {

// Turns elementwise steps of a plan into the nodes of a program, one after the other. Borrows the plan.
class FusedTranslation {
 public:
  enum class Values { kArrays, kElements };  // what steps compute, but for operands that they say are single

  // The most weight of functions that wait for one another: two of them, unless both are called. With more, the
  // processor no longer sees the next vector while it is at one, and whole arrays between the functions cost less.
  static constexpr int kMostWaiting = 5;

  FusedTranslation(JitIsa isa, const FusedPlan& plan) : isa_(isa), plan_(plan) {}

  // Lets a tile of one element, repeated, be read as the element from now on.
  void AddRepeats(const std::vector<FusedStep>& repeats);

  void Start(Values values);
  // Adds a step's instructions, and a store of its result; false if there is no code for one of them, or too many
  // wait for one another.
  bool Add(const FusedStep& step);
  // Returns the value at a place.
  JitNodeId Value(PlaceId place, bool single, DType dtype);
  JitNodeId AddNode(JitNode node);

  JitProgram& program() { return program_; }
  const JitProgram& program() const { return program_; }
  // Tells whether an added step has set the place, or read it.
  bool Has(PlaceId place) const { return values_.contains({place, values_are_single_}); }
  size_t num_arrays() const { return arrays_.size(); }

 private:
  // Returns a leaf: the constant at the place, or the element there.
  JitNode Known(PlaceId place, DType dtype) const;
  bool Set(PlaceId out, JitNodeId value);
  // Tells whether a step's node can join the program. Two C128 fill a vector of AVX2, and two elements of four bytes or
  // less are not even half a small one, which is loaded and stored as a whole.
  bool FitsWidths(const JitNode& node) const;
  // Returns the number of functions that a step's operands wait for, one after the other, by their weights.
  int WaitingFor(const FusedStep& step) const;

  const JitIsa isa_;
  const FusedPlan& plan_;
  absl::flat_hash_map<PlaceId, PlaceId> repeated_;  // of the element that a place repeats
  bool values_are_single_ = false;
  JitProgram program_;
  bool has_widest_ = false, has_narrow_ = false;                     // of its values: C128, four bytes or less
  absl::flat_hash_map<std::pair<PlaceId, bool>, JitNodeId> values_;  // by whether it is one element
  absl::flat_hash_map<PlaceId, int> waiting_;                        // where it is not 0: as WaitingFor
  absl::flat_hash_set<PlaceId> arrays_;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_TRANSLATION_H_
