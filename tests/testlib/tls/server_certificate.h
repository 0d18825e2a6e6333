#ifndef TENSORD_TESTS_TESTLIB_TLS_SERVER_CERTIFICATE_H_
#define TENSORD_TESTS_TESTLIB_TLS_SERVER_CERTIFICATE_H_

#include <string>
#include <vector>

#include "tests/testlib/tls/certificate_authority.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {

// The settings of a server whose certificate and key are server.pem and server.key of that folder, behind `others`.
std::vector<std::string> CertificateSettings(const PrivateFolder& folder, std::vector<std::string> others = {});
// Writes these two files, or replaces them.
void WriteServerCertificate(const PrivateFolder& folder, const IssuedCertificate& issued);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_TLS_SERVER_CERTIFICATE_H_
