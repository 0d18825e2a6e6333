#include "clients/cpp/connection/call_context.h"

#include <string>

#include "clients/cpp/connection/routing.h"
#include "clients/cpp/connection/steady_time.h"

namespace tensord::client {

absl::Time DeadlineOf(const ConnectOptions& options, std::optional<absl::Duration> deadline) {
  if (!deadline.has_value()) deadline = options.deadline;
  return deadline.has_value() ? SteadyNow() + *deadline : absl::InfiniteFuture();
}

std::unique_ptr<grpc::ClientContext> ContextOf(const ConnectOptions& options, absl::Time deadline,
                                               absl::string_view route) {
  auto context = std::make_unique<grpc::ClientContext>();
  if (deadline != absl::InfiniteFuture()) context->set_deadline(ToGrpcDeadline(deadline));
  bool is_routed = route.empty();
  for (const auto& [key, value] : options.metadata) {
    context->AddMetadata(key, value);
    is_routed = is_routed || key == kRouteMetadata;
  }
  if (!is_routed) context->AddMetadata(kRouteMetadata, std::string(route));
  return context;
}

}  // namespace tensord::client
