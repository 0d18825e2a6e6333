#ifndef TENSORD_EXECUTE_CALL_H_
#define TENSORD_EXECUTE_CALL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensord/argument.h"
#include "tensord/execute_options.h"
#include "tensord/message_names.h"
#include "tensord/result_plan.h"

namespace tensord::client {

// One execution for Client::Execute or Pipeline::Submit: a program, its arguments, and plans for its results. A value.
//
//   ExecuteCall step{.fingerprint = program.fingerprint(),
//                    .arguments = {Argument::Donated("state"), batch},
//                    .results = {ResultPlan::Keep("state"), ResultPlan::Return()},
//                    .session = session.id()};
struct ExecuteCall {
  // Fingerprint of a compiled program, or else a graph. The graph must live until Execute or Submit returns.
  std::string fingerprint = {};
  const v1::Graph* graph = nullptr;
  // Arguments in the order of the program's inputs.
  std::vector<Argument> arguments = {};
  // Plans in the order of the program's outputs. Further outputs are returned.
  std::vector<ResultPlan> results = {};
  // Session of the handles; needed if there are handles.
  std::string session = {};
  ExecuteOptions options = {};
};

// Converts a call without its arguments to its message. INVALID_ARGUMENT unless it names exactly one program or graph.
absl::StatusOr<v1::ExecuteRequest> ToExecuteRequest(const ExecuteCall& call);

}  // namespace tensord::client

#endif  // TENSORD_EXECUTE_CALL_H_
