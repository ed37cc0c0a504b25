#pragma once

#include "pt2/import.h"
#include "pt2/payload.h"
#include "pt2/zip.h"

#include <memory>
#include <string>

namespace chute::pt2 {

/// Reads a JSON member; its text gets the padding that the parser wants.
Result<Document> read_document(const Zip &zip, const ZipEntry &entry, bool check_crc);

/// Payloads of archives from torch 2.9 on: one raw member per storage, and a JSON table that says
/// which tensor lies where.
Result<std::unique_ptr<Payloads>> open_payloads(const Zip &zip, const std::string &root,
                                                const std::string &model,
                                                const ReadOptions &options);

} // namespace chute::pt2
