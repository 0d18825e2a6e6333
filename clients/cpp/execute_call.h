#ifndef TENSORD_CLIENTS_CPP_EXECUTE_CALL_H_
#define TENSORD_CLIENTS_CPP_EXECUTE_CALL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/argument.h"
#include "clients/cpp/execute_options.h"
#include "clients/cpp/result_plan.h"
#include "tensord/v1/compute.pb.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {

// One execution: what runs, on what, and what becomes of its results. For Client::Execute and Pipeline::Submit. A
// value.
//
//   ExecuteCall step{.fingerprint = program.fingerprint(),
//                    .arguments = {Argument::Donated("state"), batch},
//                    .results = {ResultPlan::Keep("state"), ResultPlan::Return()},
//                    .session = session.id()};
struct ExecuteCall {
  // A compiled program, or else a graph, which must live until the function that is given the call returns.
  std::string fingerprint;
  const v1::Graph* graph = nullptr;
  // In the order of the program's inputs.
  std::vector<Argument> arguments;
  // In the order of its outputs; those beyond are returned.
  std::vector<ResultPlan> results;
  // Whose handles they are; handles need one.
  std::string session;
  ExecuteOptions options;
};

// The call as the wire has it, without its arguments. INVALID_ARGUMENT where it names no program, or two.
absl::StatusOr<v1::ExecuteRequest> ToExecuteRequest(const ExecuteCall& call);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_EXECUTE_CALL_H_
