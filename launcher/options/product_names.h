// The products that ddprun may be built without (CMake's options DDPRUN_…), as a refusal names
// them: "--warm: this ddprun was built without warm starts". Pure.
#pragma once

#include <string_view>

namespace ddprun::launcher {

inline constexpr std::string_view kOperators = "the operators' service", kEtcd = "etcd",
                                  kWarmStarts = "warm starts", kMpi = "MPI",
                                  kDiagnosis = "diagnosis", kRehearsal = "rehearsal",
                                  kFlightRecorder = "diagnosis, warm starts";  // it needs both

}  // namespace ddprun::launcher
