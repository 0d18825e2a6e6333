#include "tests/testlib/tls/server_certificate.h"

namespace tensord {

std::vector<std::string> CertificateSettings(const PrivateFolder& folder, std::vector<std::string> others) {
  others.push_back("tls.certificate=" + folder.PathOf("server.pem"));
  others.push_back("tls.key=" + folder.PathOf("server.key"));
  return others;
}

void WriteServerCertificate(const PrivateFolder& folder, const IssuedCertificate& issued) {
  folder.Write("server.pem", issued.certificate, 0644);
  folder.Write("server.key", issued.key);
}

}  // namespace tensord
