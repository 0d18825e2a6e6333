#include "tests/fuzz/fuzz_targets.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/entries.h"

namespace tensord {
namespace {

constexpr FuzzTarget kFuzzTargets[] = {
    {"broker_packets_fuzz", FuzzBrokerPackets},
    {"differentiate_fuzz", FuzzDifferentiate},
    {"dim_expr_fuzz", FuzzDimExpr},
    {"einsum_fuzz", FuzzEinsum},
    {"execute_response_fuzz", FuzzExecuteResponse},
    {"graph_text_fuzz", FuzzGraphText},
    {"graph_wire_fuzz", FuzzGraphWire},
    {"http_request_fuzz", FuzzHttpRequest},
    {"identity_table_fuzz", FuzzIdentityTable},
    {"received_execute_fuzz", FuzzReceivedExecute},
    {"reflection_fuzz", FuzzReflection},
    {"stored_program_fuzz", FuzzStoredProgram},
    {"trace_context_fuzz", FuzzTraceContext},
};

}  // namespace

absl::Span<const FuzzTarget> FuzzTargets() { return kFuzzTargets; }

const FuzzTarget& FuzzTargetNamed(absl::string_view name) {
  for (const FuzzTarget& target : kFuzzTargets) {
    if (target.name == name) return target;
  }
  std::fprintf(stderr, "no fuzz target is called %s\n", std::string(name).c_str());
  std::abort();
}

}  // namespace tensord
