// The commands of tensordctl, against a server that returns what it gets.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "clients/cli/files/file.h"
#include "clients/cli/files/graph_file.h"
#include "clients/cli/files/npy.h"
#include "clients/cli/shell/help.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tensord/einsum/v1/einsum.pb.h"
#include "tensord/v1/admin.grpc.pb.h"
#include "tests/testlib/peers/tensordctl_call.h"
#include "tests/unit/clients/fake_server.h"

namespace tensord::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr char kIdentity[] = R"({
  "inputs": [{"name": "x", "type": {"dtype": "DTYPE_F32", "shape": [{"size": 2}]}}],
  "outputs": [{"name": "y", "value": "x"}]
})";

google::protobuf::Struct Json(const std::string& text) {
  google::protobuf::Struct json;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text, &json).ok()) << text;
  return json;
}

class TensordctlTest : public ::testing::Test {
 protected:
  TensordctlTest()
      : folder_(absl::StrCat(::testing::TempDir(), "/tensordctl-", getpid(), "-",
                             absl::Hex(reinterpret_cast<uintptr_t>(this)))) {
    graph_ = absl::StrCat(folder_, ".json");
    input_ = absl::StrCat(folder_, "-x.npy");
    output_ = absl::StrCat(folder_, "-y.npy");
    EXPECT_TRUE(WriteFile(graph_, kIdentity).ok());
    EXPECT_TRUE(WriteNpy(input_, *client::HostTensor::FromVector(std::vector<float>{1, 2}, {2})).ok());
    target_ = absl::StrCat("--target=", server_.target());
  }
  ~TensordctlTest() override {
    for (const std::string& path : {graph_, input_, output_}) std::remove(path.c_str());
  }

  client::FakeServer server_;
  std::string folder_;
  std::string graph_;
  std::string input_;
  std::string output_;
  std::string target_;
};

TEST_F(TensordctlTest, RunWritesNpyFilesAndSaysWhatItDid) {
  const Outcome outcome =
      CallTensordctl({"run", graph_, target_, "--input", "x=" + input_, "--output=y=" + output_, "--device=cpu"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("y: f32[2] to " + output_));
  EXPECT_THAT(outcome.out, HasSubstr("program ffffffffffff on cpu:0: compiled before (memory), queue 0, run 1.5ms"));
  EXPECT_THAT(*ReadNpy(output_)->Values<float>(), ElementsAre(1, 2));
  EXPECT_EQ(server_.compile_request.options().device(), "cpu");
  EXPECT_EQ(server_.execute_request.fingerprint(), std::string(64, 'f'));
}

TEST_F(TensordctlTest, NothingFollowsDataOnStandardOutput) {
  const auto captured = [](const std::vector<std::string>& command) {
    ::testing::internal::CaptureStdout();
    const Outcome outcome = CallTensordctl(command);
    std::string data = ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return data;
  };
  const std::vector<std::string> run = {"run", graph_, target_, "--input=x=" + input_};
  const auto with = [&run](const std::vector<std::string>& more) {
    std::vector<std::string> all = run;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  EXPECT_THAT(*ParseNpy(captured(with({"--output=y=-"})))->Values<float>(), ElementsAre(1, 2));
  EXPECT_THAT(*ParseNpy(captured(with({"--output=y=-", "--json"})))->Values<float>(), ElementsAre(1, 2));
  EXPECT_TRUE(Json(captured(with({"--trace=-", "--profile"}))).fields().contains("traceEvents"));
  EXPECT_TRUE(ParseNpy(captured({"einsum", "i->i", input_, target_, "--output=-"})).ok());
  EXPECT_EQ(CallTensordctl(with({"--output=y=-", "--trace=-"})).status, kExitUsage);
}

TEST_F(TensordctlTest, RunSummarizesOutputsWithoutAFile) {
  EXPECT_THAT(CallTensordctl({"run", graph_, target_, "--input=x=" + input_}).out, HasSubstr("y: f32[2] 1, 2\n"));
  const Outcome profile = CallTensordctl({"run", graph_, target_, "--input=x=" + input_, "--profile"});
  EXPECT_THAT(profile.out, HasSubstr("copy"));
  const auto json = Json(CallTensordctl({"run", graph_, target_, "--input=x=" + input_, "--json"}).out);
  const auto& output = json.fields().at("outputs").list_value().values(0).struct_value().fields();
  EXPECT_EQ(output.at("name").string_value(), "y");
  EXPECT_EQ(output.at("first_values").list_value().values(1).number_value(), 2);
  EXPECT_EQ(json.fields().at("run_ms").number_value(), 1.5);
}

TEST_F(TensordctlTest, RunSendsTheGraphAgainWhereTheProgramIsGone) {
  server_.refuse_execute = [](const v1::ExecuteRequest& request, const grpc::ServerContext&) {
    return request.has_graph() ? grpc::Status::OK : client::FakeServer::ProgramNotFound();
  };
  EXPECT_EQ(CallTensordctl({"run", graph_, target_, "--input=x=" + input_}).status, kExitOk);
}

TEST_F(TensordctlTest, FlagsMayStandBeforeTheCommand) {
  EXPECT_EQ(CallTensordctl({target_, "health"}).out, "SERVING\n");
  EXPECT_EQ(CallTensordctl({"--target", server_.target(), "--json", "health"}).status, kExitOk);
  const Outcome run = CallTensordctl({"--input", "x=" + input_, target_, "run", graph_});
  EXPECT_EQ(run.status, kExitOk) << run.err;
  const Outcome written = CallTensordctl({"-o", output_, "einsum", target_, "i->i", input_});
  EXPECT_EQ(written.status, kExitOk) << written.err;
  EXPECT_THAT(CallTensordctl({"--admin=x", "health"}).err, HasSubstr("tensordctl health: unknown flag: --admin"));
}

TEST_F(TensordctlTest, RunSaysWhichInputIsMissingOrUnknown) {
  const Outcome missing = CallTensordctl({"run", graph_, target_});
  EXPECT_EQ(missing.status, kExitUsage) << "as an unknown one";
  EXPECT_THAT(missing.err, HasSubstr("an input of the graph has no value; add --input=x=FILE.npy"));
  const Outcome unknown = CallTensordctl({"run", graph_, target_, "--input=z=" + input_});
  EXPECT_EQ(unknown.status, kExitUsage);
  EXPECT_THAT(unknown.err, HasSubstr(absl::StrCat("the graph has no such input, but x: --input=z=", input_, "\n")));
  const Outcome output = CallTensordctl({"run", graph_, target_, "--input=x=" + input_, "--output=x=o.npy"});
  EXPECT_THAT(output.err, HasSubstr("the graph has no such output, but y: --output=x=o.npy"));
  EXPECT_EQ(CallTensordctl({"run", graph_, target_, "--input=x=" + input_, "--output=z=" + output_}).status,
            kExitUsage);
  EXPECT_EQ(CallTensordctl({"run", graph_, target_, "--input=x=" + input_, "--input=x=" + input_}).status, kExitUsage);
  EXPECT_EQ(CallTensordctl({"run", graph_, target_, "--input=x=/nowhere.npy"}).status, kExitFailed);
  EXPECT_EQ(CallTensordctl({"run", target_}).status, kExitUsage);
  EXPECT_EQ(CallTensordctl({"run", graph_, target_, "--order=fortran"}).status, kExitUsage);
}

TEST_F(TensordctlTest, CompileShowsTheProgram) {
  const Outcome outcome = CallTensordctl({"compile", graph_, target_, "--order=column"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("fingerprint: " + std::string(64, 'f')));
  EXPECT_THAT(outcome.out, HasSubstr("input x: f32[2]"));
  EXPECT_EQ(server_.compile_request.options().order(), v1::MEMORY_ORDER_COLUMN_MAJOR);
  const auto json = Json(CallTensordctl({"compile", graph_, target_, "--json"}).out);
  EXPECT_EQ(json.fields().at("source").string_value(), "SOURCE_MEMORY");
}

TEST_F(TensordctlTest, ExplainPrintsTheText) {
  EXPECT_EQ(CallTensordctl({"explain", graph_, target_}).out, "one segment\n");
  EXPECT_EQ(server_.explain_request.graph().outputs_size(), 1);
}

TEST_F(TensordctlTest, ExplainDrawsTheProgram) {
  const Outcome unreadable = CallTensordctl({"explain", "--dot", graph_, target_});
  EXPECT_EQ(unreadable.status, kExitFailed);
  EXPECT_THAT(unreadable.err, HasSubstr("NOT_FOUND"));
  server_.explain_text =
      "program \"p\" on cpu:0, row-major on the wire\n  %0 input \"x\" : f32[2]\n  output \"y\" = %0\n";
  const Outcome drawn = CallTensordctl({"explain", "--dot", graph_, target_});
  EXPECT_EQ(drawn.status, kExitOk) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("\"input %0\" -> \"output 0\" [label=\"f32[2]\"];"));
  const auto json = Json(CallTensordctl({"explain", "--dot", "--json", graph_, target_}).out);
  EXPECT_EQ(json.fields().at("dot").string_value(), drawn.out);
  EXPECT_EQ(json.fields().at("text").string_value(), server_.explain_text);
}

TEST_F(TensordctlTest, RunWritesATrace) {
  const std::string path = absl::StrCat(folder_, "-trace.json");
  const Outcome outcome = CallTensordctl({"run", graph_, target_, "--input=x=" + input_, "--trace=" + path});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_TRUE(server_.execute_request.profile());
  EXPECT_THAT(outcome.out, Not(HasSubstr("copy")));  // the profile is not printed unless it is asked for
  const absl::StatusOr<std::string> trace = ReadFile(path);
  ASSERT_TRUE(trace.ok()) << trace.status();
  std::remove(path.c_str());
  std::vector<std::string> names;
  const auto json = Json(*trace);
  for (const auto& event : json.fields().at("traceEvents").list_value().values()) {
    if (event.struct_value().fields().at("ph").string_value() != "X") continue;
    names.push_back(event.struct_value().fields().at("name").string_value());
  }
  EXPECT_THAT(names, ElementsAre("connect", "compile", "execute", "queue", "run", "copy"));
  EXPECT_EQ(CallTensordctl({"run", graph_, target_, "--input=x=" + input_, "--trace=/nowhere/t.json"}).status,
            kExitFailed);
}

TEST_F(TensordctlTest, ValidateSaysWhyNot) {
  EXPECT_EQ(CallTensordctl({"validate", graph_, target_}).status, kExitOk);
  server_.refuse = [] {
    v1::ErrorDetail detail;
    detail.set_reason("SHAPE_MISMATCH");
    detail.set_node(std::string(90, 'n'));
    detail.set_op("Add");
    return client::FakeServer::Refusal(grpc::StatusCode::INVALID_ARGUMENT, "shapes differ", detail);
  };
  const Outcome outcome = CallTensordctl({"validate", graph_, target_});
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("INVALID_ARGUMENT: shapes differ\n  reason: SHAPE_MISMATCH\n  node: nnn"));
  EXPECT_THAT(outcome.err, HasSubstr("  op: Add\n"));
  const auto json = Json(CallTensordctl({"validate", graph_, target_, "--json"}).out);
  EXPECT_EQ(json.fields().at("error").struct_value().fields().at("reason").string_value(), "SHAPE_MISMATCH");
}

TEST_F(TensordctlTest, DifferentiateWritesAGraph) {
  const std::string file = absl::StrCat(folder_, "-grad.txtpb");
  const Outcome outcome =
      CallTensordctl({"differentiate", graph_, target_, "--mode=vjp", "--wrt=x", "--keep-outputs", "-o", file});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(outcome.out, absl::StrCat("0 nodes to ", file, "\ninput x\noutput y.derivative\n"));
  EXPECT_EQ(server_.differentiate_request.mode(), v1::DifferentiateRequest::MODE_VJP);
  EXPECT_THAT(server_.differentiate_request.wrt(), ElementsAre("x"));
  EXPECT_TRUE(server_.differentiate_request.keep_outputs());
  EXPECT_EQ(ReadGraph(file)->outputs(0).name(), "y.derivative");
  const auto json = Json(CallTensordctl({"differentiate", graph_, target_, "-o", file, "--json"}).out);
  EXPECT_EQ(json.fields().at("outputs").list_value().values(0).string_value(), "y.derivative");
  EXPECT_EQ(server_.differentiate_request.mode(), v1::DifferentiateRequest::MODE_GRAD);
  std::remove(file.c_str());

  ::testing::internal::CaptureStdout();
  EXPECT_EQ(CallTensordctl({"differentiate", graph_, target_, "--mode", "jvp"}).out, "");
  const std::string printed = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(ParseGraph(printed, GraphFormat::kJson)->outputs(0).name(), "y.derivative") << printed;
  EXPECT_EQ(server_.differentiate_request.mode(), v1::DifferentiateRequest::MODE_JVP);
}

TEST_F(TensordctlTest, DifferentiateWritesTwoPasses) {
  const std::string forward = absl::StrCat(folder_, "-forward.pb"), backward = absl::StrCat(folder_, "-backward.json");
  const Outcome outcome = CallTensordctl(
      {"differentiate", graph_, target_, "--checkpoints=x", "--checkpoints=y:1", "-o", forward, "--split", backward});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(server_.differentiate_request.checkpoints(), ElementsAre("x", "y:1"));
  EXPECT_TRUE(server_.differentiate_request.split());
  EXPECT_EQ(ReadGraph(forward)->outputs(0).name(), "y.derivative");
  EXPECT_EQ(ReadGraph(backward)->outputs(0).name(), "y");
  std::remove(forward.c_str());
  std::remove(backward.c_str());
}

TEST_F(TensordctlTest, DifferentiateSaysWhatIsWrong) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"differentiate", graph_, "--mode=gradient"}, "flag needs grad, jvp or vjp: --mode=gradient"},
      {{"differentiate", graph_, "--output=grad.txt"}, "a graph file's name ends in .json"},
      {{"differentiate", graph_, "--split=-"}, "flag needs a file if there is no --output=FILE: --split=-"},
      {{"differentiate", graph_, "-o", "a.json", "--split=b.txt"}, "a graph file's name ends in .json"},
      {{"differentiate"}, "needs exactly one graph file, 0 given"}};
  for (const auto& [words, why] : wrong) {
    const Outcome outcome = CallTensordctl(words);
    EXPECT_EQ(outcome.status, kExitUsage);
    EXPECT_THAT(outcome.err, HasSubstr(why));
  }
  server_.refuse = [] { return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "there is no derivative of eig here"); };
  const Outcome refused = CallTensordctl({"differentiate", graph_, target_});
  EXPECT_EQ(refused.status, kExitFailed);
  EXPECT_THAT(refused.err, HasSubstr("no derivative of eig"));
}

TEST_F(TensordctlTest, HealthIsAProbe) {
  EXPECT_EQ(CallTensordctl({"health", target_}).status, kExitOk);
  server_.health()->SetServingStatus(false);
  const Outcome outcome = CallTensordctl({"health", target_});
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_EQ(outcome.out, "NOT_SERVING\n");
  EXPECT_EQ(CallTensordctl({"health", target_, "--service=nobody"}).out, "SERVICE_UNKNOWN\n");
  EXPECT_EQ(CallTensordctl({"health", "--target=unix:/nowhere.sock", "--deadline=50ms"}).status, kExitFailed);
  EXPECT_EQ(CallTensordctl({"health", target_, "--deadline=soon"}).status, kExitUsage);
  EXPECT_EQ(CallTensordctl({"health", target_, "now"}).status, kExitUsage);
}

TEST_F(TensordctlTest, InfoShowsTheServer) {
  server_.info.set_version("1.2.3");
  v1::Device* device = server_.info.add_devices();
  device->set_name("cpu:0");
  device->set_ready(true);
  v1::Capability* capability = server_.info.add_capabilities();
  capability->set_device("cpu");
  capability->set_op("Add");
  capability->add_dtypes(v1::DTYPE_F32);
  capability->add_dtypes(v1::DTYPE_BF16);
  const Outcome outcome = CallTensordctl({"info", target_});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("tensord 1.2.3 at unix:"));
  EXPECT_THAT(outcome.out, HasSubstr("device cpu:0: "));
  EXPECT_THAT(CallTensordctl({"info", target_, "--capabilities"}).out, HasSubstr("f32 bf16\n"));
}

TEST_F(TensordctlTest, ATerminalObeysNothingOfAServerOrAGraph) {
  const std::string order = "\x1b[2J", turned = "\u202e";
  server_.info.set_version("1" + order + turned);
  server_.info.add_devices()->set_name(order);
  server_.info.add_families(order);
  server_.info.add_limits()->set_name(order);
  server_.explain_text = order + turned;
  const std::string graph = absl::StrCat(folder_, "-order.json");
  ASSERT_TRUE(WriteFile(graph, R"({"inputs":[{"name":"\u001b[2J\u202e","type":{"dtype":"DTYPE_F32"}}]})").ok());
  const auto has_none = [&](const std::string& text) {
    return text.find('\x1b') == std::string::npos && text.find(turned) == std::string::npos;
  };
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"info", target_}, {"explain", graph_, target_}, {"run", graph, target_}}) {
    const Outcome outcome = CallTensordctl(words);
    EXPECT_TRUE(has_none(outcome.out)) << outcome.out;
    EXPECT_TRUE(has_none(outcome.err)) << outcome.err;
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr("\\x1b[2J"));
  }
  std::remove(graph.c_str());
}

TEST_F(TensordctlTest, EinsumRunsOnFiles) {
  const Outcome outcome = CallTensordctl({"einsum", "i, i", input_, input_, target_, "-o", output_,
                                          "--optimizer=greedy", "--largest-intermediate", "1000", "--device=cpu"});
  // The server gives the arguments back, which are too many.
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("another number of results: 2 for 1"));
  einsum::v1::Einsum sent;
  ASSERT_TRUE(server_.compile_request.graph().nodes(0).extension().op().UnpackTo(&sent));
  EXPECT_EQ(sent.equation(), "i,i->");
  EXPECT_EQ(sent.optimizer(), einsum::v1::Einsum::OPTIMIZER_GREEDY);
  EXPECT_EQ(sent.largest_intermediate(), 1000);
  EXPECT_EQ(server_.compile_request.options().device(), "cpu");

  const Outcome written = CallTensordctl({"einsum", "i->i", input_, target_, "-o", output_, "--profile"});
  EXPECT_EQ(written.status, kExitOk) << written.err;
  EXPECT_THAT(written.out, HasSubstr("result: f32[2] to " + output_));
  EXPECT_THAT(written.out, HasSubstr("copy"));
  EXPECT_THAT(*ReadNpy(output_)->Values<float>(), ElementsAre(1, 2));
  EXPECT_THAT(CallTensordctl({"einsum", "i", input_, target_}).out, HasSubstr("result: f32[2] 1, 2\n"));
  EXPECT_EQ(CallTensordctl({"einsum", "i", input_, target_, "--output=/nowhere/y.npy"}).status, kExitFailed);
}

TEST_F(TensordctlTest, ARefusalNamesTheFiles) {
  server_.refuse = [] { return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "axis 0 of operand 1 differs"); };
  const std::string listed = absl::StrCat("INVALID_ARGUMENT: axis 0 of operand 1 differs\n  operand 0: ", input_,
                                          ", f32[2]\n  operand 1: ", input_, ", f32[2]\n");
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--path"}, {"--explain"}}) {
    std::vector<std::string> words = {"einsum", "i,i", input_, input_, target_};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_THAT(CallTensordctl(words).err, HasSubstr(listed));
  }
  const Outcome run = CallTensordctl({"run", graph_, target_, "--input=x=" + input_, "--json"});
  EXPECT_THAT(run.err, HasSubstr(absl::StrCat("  input x: ", input_, ", f32[2]\n")));
  const auto json = Json(run.out);
  const auto& tensor = json.fields().at("tensors").list_value().values(0).struct_value().fields();
  EXPECT_EQ(tensor.at("name").string_value(), "input x");
  EXPECT_EQ(tensor.at("file").string_value(), input_);
  EXPECT_EQ(tensor.at("type").string_value(), "f32[2]");

  server_.refuse = [] { return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "no"); };
  EXPECT_THAT(CallTensordctl({"einsum", "i", input_, target_}).err, Not(HasSubstr("operand 0:")));
}

TEST_F(TensordctlTest, EinsumExplains) {
  EXPECT_EQ(CallTensordctl({"einsum", "i->i", input_, target_, "--explain"}).out, "one segment\n");
  EXPECT_EQ(server_.explain_request.graph().inputs(0).name(), "operand0");
  const auto json = Json(CallTensordctl({"einsum", "i->i", input_, target_, "--explain", "--json"}).out);
  EXPECT_EQ(json.fields().at("text").string_value(), "one segment");
}

TEST_F(TensordctlTest, EinsumShowsItsPath) {
  v1::ContractionPlan plan;
  for (const auto& [first, second] : {std::pair(1, 2), {0, 1}}) {
    v1::ContractionPlan::Step& step = *plan.add_path();
    step.add_operands(first);
    step.add_operands(second);
  }
  plan.set_optimizer("optimal");
  plan.set_flops(4e6);
  plan.set_largest_intermediate(1000);
  server_.contractions = {plan};
  const std::vector<std::string> words = {"einsum", "i,i,i->", input_, input_, input_, target_, "--path"};
  EXPECT_EQ(CallTensordctl(words).out,
            "path                  (1, 2), (0, 1)\nchosen by             optimal\noperations            4e+06\n"
            "largest intermediate  1000 elements\n");
  EXPECT_EQ(server_.explain_request.graph().inputs_size(), 3);
  EXPECT_EQ(server_.execute_request.arguments_size(), 0) << "nothing is evaluated";
  std::vector<std::string> with_json = words;
  with_json.push_back("--json");
  const auto json = Json(CallTensordctl(with_json).out);
  EXPECT_EQ(json.fields().at("flops").number_value(), 4e6);
  EXPECT_EQ(json.fields().at("path").list_value().values_size(), 2);

  server_.contractions.clear();
  const Outcome old = CallTensordctl(words);
  EXPECT_EQ(old.status, kExitFailed);
  EXPECT_THAT(old.err, HasSubstr("does not say how it plans"));
}

TEST_F(TensordctlTest, EinsumTakesItsPath) {
  CallTensordctl({"einsum", "i,i,i->", input_, input_, input_, target_, "--path", "--steps=(1, 2), (0,1)"});
  einsum::v1::Einsum sent;
  ASSERT_TRUE(server_.explain_request.graph().nodes(0).extension().op().UnpackTo(&sent));
  ASSERT_EQ(sent.path_size(), 2);
  EXPECT_THAT(sent.path(0).operands(), ElementsAre(1, 2));
  EXPECT_THAT(sent.path(1).operands(), ElementsAre(0, 1));
  for (const char* steps : {"", "1,2", "(1,2", "(1,2)(0,1)", "(1,2),", "(1;2)", "(-1,0)", "()"}) {
    const Outcome wrong = CallTensordctl({"einsum", "i", input_, target_, absl::StrCat("--steps=", steps)});
    EXPECT_EQ(wrong.status, kExitUsage) << steps;
    EXPECT_THAT(wrong.err, HasSubstr(absl::StrCat("--steps=", steps)));
  }
  const Outcome both = CallTensordctl({"einsum", "i", input_, target_, "--steps=(0,)", "--optimizer=auto"});
  EXPECT_EQ(both.status, kExitUsage);
  EXPECT_THAT(both.err, HasSubstr("exclude each other"));
}

TEST_F(TensordctlTest, EinsumSaysWhatIsWrong) {
  EXPECT_EQ(CallTensordctl({"einsum", target_}).status, kExitUsage);
  EXPECT_EQ(CallTensordctl({"einsum", "i->i", target_}).status, kExitUsage);
  EXPECT_EQ(CallTensordctl({"einsum", "i", input_, target_, "--optimizer=best"}).status, kExitUsage);
  for (const char* largest : {"0", "-1", "many", ""}) {
    EXPECT_EQ(CallTensordctl({"einsum", "i", input_, target_, absl::StrCat("--largest-intermediate=", largest)}).status,
              kExitUsage);
  }
  EXPECT_EQ(CallTensordctl({"einsum", "i", input_, target_, "-o"}).status, kExitUsage);
  EXPECT_EQ(CallTensordctl({"einsum", "i", input_, target_, "-x", "y"}).status, kExitUsage);
  const Outcome missing = CallTensordctl({"einsum", "i", "/nowhere.npy", target_});
  EXPECT_EQ(missing.status, kExitFailed);
  EXPECT_THAT(missing.err, HasSubstr("/nowhere.npy"));
}

// Returns the longest time of the calls that the server got since the last look.
std::chrono::hours LongestTimeLeft(client::FakeServer& server) {
  std::chrono::system_clock::duration longest{};
  EXPECT_FALSE(server.calls.empty());
  for (const client::FakeServer::Called& call : server.calls) longest = std::max(longest, call.time_left);
  server.calls.clear();
  return std::chrono::duration_cast<std::chrono::hours>(longest);
}

TEST_F(TensordctlTest, EveryCallHasADeadlineWithoutTheFlag) {
  EXPECT_EQ(CallTensordctl({"info", target_}).status, kExitOk);
  EXPECT_LT(LongestTimeLeft(server_).count(), 1);
  const std::vector<std::vector<std::string>> commands = {
      {"run", graph_, "--input=x=" + input_},
      {"einsum", "i->i", input_},
      {"compile", graph_},
      {"explain", graph_},
      {"validate", graph_},
      {"differentiate", graph_, "--output=" + graph_},
  };
  for (std::vector<std::string> words : commands) {
    words.push_back(target_);
    const Outcome outcome = CallTensordctl(words);
    EXPECT_EQ(outcome.status, kExitOk) << words[0] << outcome.err;
    EXPECT_LT(LongestTimeLeft(server_).count(), 24) << words[0];
  }
}

TEST_F(TensordctlTest, BenchMakesReadyWithADeadline) {
  server_.refuse = [] { return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "not that"); };
  EXPECT_EQ(CallTensordctl({"bench", "--workload=" + graph_, target_}).status, kExitFailed);
  EXPECT_LT(LongestTimeLeft(server_).count(), 24);
}

TEST_F(TensordctlTest, AServerThatAnswersNoCallIsLeftWithAWordOnTheDeadline) {
  const auto looked = std::make_shared<absl::Notification>();  // which the call may outlive
  server_.refuse = [looked] {
    looked->WaitForNotification();
    return grpc::Status::OK;
  };
  const Outcome outcome = CallTensordctl({"info", target_, "--deadline=20ms"});
  looked->Notify();
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("DEADLINE_EXCEEDED"));
  EXPECT_THAT(outcome.err, HasSubstr("--deadline=TIME"));
}

// A listener for operators, which keeps how long its calls may take, and lists programs without an end.
class EndlessAdmin : private v1::Admin::Service {
 public:
  EndlessAdmin() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~EndlessAdmin() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

  std::atomic<bool> is_without_deadline = false;

 private:
  grpc::Status ListPrograms(grpc::ServerContext* context, const v1::ListProgramsRequest*,
                            v1::ListProgramsResponse* response) override {
    Look(*context);
    response->set_next_page_token(absl::StrCat(++pages_));
    return grpc::Status::OK;
  }
  grpc::Status ListSessions(grpc::ServerContext* context, const v1::ListSessionsRequest*,
                            v1::ListSessionsResponse*) override {
    Look(*context);
    return grpc::Status::OK;
  }
  grpc::Status CaptureProfile(grpc::ServerContext* context, const v1::CaptureProfileRequest* request,
                              v1::CaptureProfileResponse*) override {
    Look(*context);
    const std::chrono::seconds asked(request->duration().seconds());
    EXPECT_GT(context->deadline(), std::chrono::system_clock::now() + asked);
    return grpc::Status::OK;
  }
  void Look(const grpc::ServerContext& context) {
    if (context.deadline() > std::chrono::system_clock::now() + std::chrono::hours(24)) is_without_deadline = true;
  }

  int port_ = 0;
  std::atomic<int> pages_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(TensordctlForOperators, EveryCallHasADeadlineWithoutTheFlag) {
  EndlessAdmin server;
  EXPECT_EQ(CallTensordctl({"sessions", "--admin=" + server.target()}).status, kExitOk);
  EXPECT_EQ(CallTensordctl({"profile", "--seconds=60", "--admin=" + server.target()}).status, kExitOk);
  EXPECT_FALSE(server.is_without_deadline);
}

TEST(TensordctlForOperators, PagesWithoutAnEndEndAtTheDeadline) {
  EndlessAdmin server;
  const Outcome outcome = CallTensordctl({"programs", "--admin=" + server.target(), "--deadline=100ms"});
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("DEADLINE_EXCEEDED"));
}

TEST(Tensordctl, HelpIsForEverythingAndMistakesAreUsage) {
  const Outcome help = CallTensordctl({"--help"});
  EXPECT_EQ(help.status, kExitOk);
  for (const Command& each : AllCommands()) {
    const std::string& command = each.name;
    EXPECT_THAT(help.out, HasSubstr(absl::StrCat("\n  ", command, " ")));
    const Outcome own = CallTensordctl({command, "--help"});
    EXPECT_EQ(own.status, kExitOk);
    EXPECT_THAT(own.out, HasSubstr("Usage: tensordctl " + command));
    EXPECT_THAT(own.out, HasSubstr("--json"));
    EXPECT_EQ(CallTensordctl({command, "--bogus"}).status, kExitUsage);
    for (const std::vector<std::string>& same :
         {std::vector<std::string>{"help", command}, {"--help", command}, {command, "-h"}, {"-h", command}}) {
      EXPECT_EQ(CallTensordctl(same).out, own.out) << absl::StrJoin(same, " ");
    }
  }
  EXPECT_EQ(CallTensordctl({}).status, kExitUsage);
  EXPECT_EQ(CallTensordctl({"--target=x"}).err, "tensordctl: no command given\nTry: tensordctl --help\n");
  const Outcome misspelt = CallTensordctl({"compil"});
  EXPECT_EQ(misspelt.status, kExitUsage);
  EXPECT_THAT(misspelt.err, HasSubstr("unknown command: compil; did you mean compile?"));
  EXPECT_THAT(CallTensordctl({"help", "xyz"}).err, HasSubstr("unknown command: xyz\n"));
  EXPECT_THAT(CallTensordctl({"--versoin"}).err, HasSubstr("unknown flag: --versoin; did you mean --version?"));
}

TEST(Tensordctl, SaysItsVersion) {
  const Outcome version = CallTensordctl({"--version"});
  EXPECT_EQ(version.status, kExitOk);
  EXPECT_THAT(version.out, MatchesRegex("tensordctl [0-9.]+\n"));
}

TEST(Tensordctl, AFlagMeansTheSameBeforeEveryCommand) {
  std::map<std::string, bool> takes_next_word;  // by flag
  for (const Command& command : AllCommands()) {
    for (const FlagSpec& flag : command.flags) {
      const bool takes = !flag.placeholder.empty() && flag.placeholder.front() != '[';
      const auto [known, is_new] = takes_next_word.emplace(flag.name, takes);
      EXPECT_EQ(known->second, takes) << "--" << flag.name << " of " << command.name;
    }
  }
}

TEST(Help, FitsTheScreen) {
  std::vector<std::string> texts;
  for (const size_t columns : {size_t{60}, size_t{80}, size_t{100}}) {
    texts = {GeneralHelp(AllCommands(), columns)};
    for (const Command& command : AllCommands()) texts.push_back(CommandHelp(command, columns));
    for (const std::string& text : texts) {
      for (const absl::string_view line : absl::StrSplit(text, '\n')) {
        const auto is_first_byte = [](char c) { return (c & 0xC0) != 0x80; };
        EXPECT_LE(static_cast<size_t>(std::count_if(line.begin(), line.end(), is_first_byte)), columns) << line;
      }
    }
  }
  const Command command = {.name = "fly",
                           .summary = "Rise",
                           .details = "",
                           .flags = {{.name = "height", .placeholder = "N", .help = "So many metres above the sea"}}};
  EXPECT_THAT(CommandHelp(command, 60), HasSubstr("\n  --height=N                So many metres above the sea\n"));
  EXPECT_THAT(CommandHelp(command, 30), HasSubstr("\n  --height=N\n      So many metres above the\n      sea\n"));
}

TEST(Tensordctl, AConnectionThatFailsSaysWhy) {
  const Outcome path = CallTensordctl({"info", "--target=/nowhere/s"});
  EXPECT_NE(path.status, kExitOk);
  EXPECT_THAT(path.err, HasSubstr("did you mean unix:/nowhere/s?"));
  const Outcome nobody = CallTensordctl({"info", "--target=unix:/nowhere/s", "--deadline=300ms"});
  EXPECT_THAT(nobody.err, HasSubstr("no server answers within 300ms: unix:/nowhere/s: "));
  EXPECT_THAT(nobody.err, HasSubstr("No such file or directory"));
}

TEST(Tensordctl, FilesOfAccessAreBounded) {
  for (const std::string flag : {"--ca=/dev/zero", "--token-file=/dev/zero"}) {
    const Outcome endless = CallTensordctl({"info", "--target=unix:/nowhere/s", flag});
    EXPECT_NE(endless.status, kExitOk);
    EXPECT_THAT(endless.err, HasSubstr("/dev/zero has more than")) << flag;
  }
}

TEST(Tensordctl, CommandsWithoutOperandsTakeNone) {
  for (const char* command : {"health", "info", "programs", "sessions", "drain", "token", "bench", "top"}) {
    const Outcome outcome = CallTensordctl({command, "now"});
    EXPECT_EQ(outcome.status, kExitUsage) << command;
    EXPECT_THAT(outcome.err, HasSubstr("unexpected argument: now")) << command;
  }
}

TEST(Tensordctl, EvictRefusesWhatEveryProgramBeginsWith) {
  const Outcome empty = CallTensordctl({"evict", "", "--admin=unix:/nowhere.sock"});
  EXPECT_EQ(empty.status, kExitUsage);
  EXPECT_THAT(empty.err, HasSubstr("a fingerprint is empty"));
}

TEST(Tensordctl, TokenMakesOnlyLinesThatTheServerTakes) {
  const Outcome made = CallTensordctl({"token", "--tenant=team-1.a_b", "--roles=admin,read"});
  EXPECT_EQ(made.status, kExitOk);
  EXPECT_THAT(made.out, HasSubstr("line: team-1.a_b admin,read "));
  for (const char* roles : {"", "write", "read,read", "read, execute", "read,"}) {
    const Outcome refused = CallTensordctl({"token", absl::StrCat("--roles=", roles)});
    EXPECT_EQ(refused.status, kExitUsage) << roles;
    EXPECT_THAT(refused.err, HasSubstr("execute, read and admin")) << roles;
  }
  for (const std::string& tenant : {std::string(), std::string("a b"), std::string("#a"), std::string(65, 'a')}) {
    EXPECT_EQ(CallTensordctl({"token", "--tenant=" + tenant}).status, kExitUsage) << tenant;
  }
}

}  // namespace
}  // namespace tensord::cli
