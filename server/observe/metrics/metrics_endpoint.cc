#include "server/observe/metrics/metrics_endpoint.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <exception>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "server/http/tcp_listener.h"

namespace tensord::server {
namespace {

using Collectables = std::vector<std::weak_ptr<prometheus::Collectable>>;

// An IPv6 address, which has colons, is in brackets; nothing else has any.
bool IsHost(absl::string_view host) {
  const bool in_brackets = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  return !host.empty() && in_brackets == absl::StrContains(host, ':') &&
         host.find_first_of("[],+ ") == absl::string_view::npos;
}

absl::StatusOr<TcpListener> ListenAt(absl::string_view address) {
  ASSIGN_OR_RETURN(const MetricsEndpoint::Address parsed, MetricsEndpoint::ParseAddress(address));
  absl::StatusOr<TcpListener> listener =
      TcpListener::Open(parsed.host == "localhost" ? "127.0.0.1" : parsed.host, parsed.port);
  if (listener.ok()) return listener;
  return absl::UnavailableError(absl::StrCat("cannot serve metrics at ", address, ": ", listener.status().message()));
}

HttpResponse PageOf(const Collectables& collectables) {
  std::vector<prometheus::MetricFamily> families;
  for (const auto& source : collectables) {
    const std::shared_ptr<prometheus::Collectable> alive = source.lock();
    if (alive == nullptr) continue;
    for (prometheus::MetricFamily& family : alive->Collect()) families.push_back(std::move(family));
  }
  HttpResponse page;
  page.content_type = "text/plain; version=0.0.4; charset=utf-8";
  page.body = prometheus::TextSerializer().Serialize(families);
  return page;
}

HttpResponse MetricsOf(const Collectables& collectables) {
  try {
    return PageOf(collectables);
  } catch (const std::exception& error) {  // of the library
    return HttpRefusal(500, absl::StrCat("the metrics cannot be collected: ", error.what()));
  }
}

HttpResponse Liveness(const MetricsEndpoint::Probes& probes) {
  probes.live();
  HttpResponse page;
  page.body = "the server lives\n";
  return page;
}

HttpResponse Readiness(const MetricsEndpoint::Probes& probes) {
  if (!probes.is_ready()) return HttpRefusal(503, "the server is not to be given calls: it warms up, or it stops");
  HttpResponse page;
  page.body = "the server is ready\n";
  return page;
}

HttpResponse Answer(const HttpRequest& request, const Collectables& collectables,
                    const MetricsEndpoint::Probes& probes) {
  const bool asks_metrics = request.path == "/metrics", asks_liveness = request.path == "/healthz";
  if (!asks_metrics && !asks_liveness && request.path != "/readyz") {
    return HttpRefusal(404, "there are /healthz, /readyz and /metrics");
  }
  if (request.method != "GET") {
    HttpResponse refusal = HttpRefusal(405, absl::StrCat(request.path, " is there for GET and HEAD"));
    refusal.headers.emplace_back("Allow", "GET, HEAD");
    return refusal;
  }
  if (asks_metrics) return MetricsOf(collectables);
  return asks_liveness ? Liveness(probes) : Readiness(probes);
}

}  // namespace

absl::StatusOr<MetricsEndpoint::Address> MetricsEndpoint::ParseAddress(absl::string_view text) {
  const size_t colon = text.rfind(':');
  const absl::string_view host = text.substr(0, colon);
  int port = 0;
  if (colon == absl::string_view::npos || !IsHost(host) || !absl::SimpleAtoi(text.substr(colon + 1), &port) ||
      port < 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("setting metrics is host:port, not \"", text, "\""));
  }
  return Address{.host = std::string(host), .port = port};
}

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    absl::string_view address, const std::vector<std::shared_ptr<prometheus::Collectable>>& collectables,
    Probes probes) {
  ASSIGN_OR_RETURN(TcpListener listener, ListenAt(address));
  Collectables sources(collectables.begin(), collectables.end());
  ASSIGN_OR_RETURN(std::unique_ptr<HttpServer> server,
                   HttpServer::Start(std::move(listener), {.page = "/metrics"},
                                     [sources = std::move(sources), probes = std::move(probes)](
                                         const HttpRequest& request) { return Answer(request, sources, probes); }));
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(std::move(server)));
}

}  // namespace tensord::server
