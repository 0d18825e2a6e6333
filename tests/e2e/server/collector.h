#ifndef TENSORD_TESTS_E2E_SERVER_COLLECTOR_H_
#define TENSORD_TESTS_E2E_SERVER_COLLECTOR_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/tracing/otlp.pb.h"

namespace tensord {

// A collector of spans for tests: takes what is exported to it, and keeps it. Thread-safe.
class Collector final : public grpc::CallbackGenericService {
 public:
  // How an export ends; the response is for those that end well.
  using Answer = std::function<grpc::Status(int number, otlp::ExportTraceServiceResponse* response)>;

  // All answers are OK where none is given.
  explicit Collector(const std::string& address, Answer answer = nullptr,
                     std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials());
  ~Collector() override;

  int port() const { return port_; }
  // Returns the spans of all exports that were answered with OK.
  std::vector<otlp::Span> spans() const;
  std::vector<otlp::ResourceSpans> resources() const;
  // Exports that came, however they were answered.
  int exports() const;
  // "opentelemetry…/Export", and the metadata of the last.
  std::string method() const;
  std::string metadata(const std::string& name) const;

 private:
  class Call;

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;
  grpc::Status Take(const grpc::GenericCallbackServerContext& context, const grpc::ByteBuffer& bytes,
                    grpc::ByteBuffer* response);

  const Answer answer_;
  int port_ = 0;
  mutable std::mutex mutex_;
  int exports_ = 0;
  std::string method_;
  std::map<std::string, std::string> metadata_;
  std::vector<otlp::ResourceSpans> resources_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_COLLECTOR_H_
