// A ledger entry ↔ JSON, field by field; what stands around it in a file is ledger_json's. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include "rendezvous/model/model.h"
#include "rendezvous/wire/wire_check.h"

namespace ddprun::rendezvous {

inline constexpr const char* kEntryKinds[] = {"generation", "takeover", "end"};

// Its keys are sorted: the same entry always has the same text.
nlohmann::json write_entry(const LedgerEntry& entry);

// A wrong value is a fault of the place. Throws nlohmann::json::exception where a field is missing
// or of the wrong type.
LedgerEntry read_entry(const Place& place, const nlohmann::json& json);

}  // namespace ddprun::rendezvous
