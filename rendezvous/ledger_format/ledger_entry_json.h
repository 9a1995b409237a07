// Converts a ledger entry to JSON and back. ledger_json.h adds the format line and
// the checksum around it. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include "rendezvous/model/model.h"
#include "rendezvous/wire/faults.h"

namespace ddprun::rendezvous {

// The keys are sorted, so one entry always has one text; the checksum depends on this.
nlohmann::json write_entry(const LedgerEntry& entry);

// A value out of range is recorded as a fault of `place`. A missing field or a wrong type throws
// nlohmann::json::exception.
LedgerEntry read_entry(const Place& place, const nlohmann::json& json);

}  // namespace ddprun::rendezvous
