#ifndef TENSORD_TESTS_TESTLIB_PROPERTY_SHRINKER_H_
#define TENSORD_TESTS_TESTLIB_PROPERTY_SHRINKER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/ir/graph.h"
#include "engine/tensor/literal.h"

namespace tensord::property {

// A graph, typed, and the arguments on which it goes wrong.
struct FailingCase {
  Graph graph;
  std::vector<Literal> arguments;
};

// True if a case still goes wrong. It is asked only for graphs that InferTypes accepts and the reference evaluates.
using StillFails = std::function<bool(const FailingCase&)>;

// The smallest case found until `deadline` that still fails: fewer outputs; nodes replaced by inputs that hold what
// they compute, or by their operands; symbols by numbers; smaller sizes and ranks; plainer arguments. Each step is kept
// where the case still fails. `failing` must fail.
FailingCase Shrink(FailingCase failing, const StillFails& still_fails, absl::Time deadline);

// The graph's text form and the arguments, element by element.
std::string ToString(const FailingCase& failing);

}  // namespace tensord::property

#endif  // TENSORD_TESTS_TESTLIB_PROPERTY_SHRINKER_H_
