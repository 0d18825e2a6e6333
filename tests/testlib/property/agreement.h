#ifndef TENSORD_TESTS_TESTLIB_PROPERTY_AGREEMENT_H_
#define TENSORD_TESTS_TESTLIB_PROPERTY_AGREEMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/tensor/literal.h"
#include "tests/testlib/property/random_case.h"
#include "tests/testlib/property/reference_bounds.h"
#include "tests/testlib/runs/setting_run.h"

namespace tensord::property {

// Results and how far they may be off, by set of arguments.
using Wanted = std::vector<std::vector<BoundedLiteral>>;

absl::StatusOr<Wanted> WantedOf(const Graph& graph, const std::vector<std::vector<Literal>>& arguments);

// Empty if the compiled graph's results are what is wanted, for every set of arguments; else the first difference.
std::string Disagreement(SettingRun& setting, bool row_major, const Graph& graph,
                         const std::vector<std::vector<Literal>>& arguments, const Wanted& wanted);

// The smallest case that fails alike, in words.
std::string Explained(SettingRun& setting, bool row_major, const RandomCase& failed);

}  // namespace tensord::property

#endif  // TENSORD_TESTS_TESTLIB_PROPERTY_AGREEMENT_H_
