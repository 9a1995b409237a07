// Asks nvidia-smi what the GPUs of workers do that stand still (diagnosis/standstill/gpu_use.h).
//
// Thread: the loop's. The answer comes in time: nvidia-smi may hang together with the driver, so it
// is a child with a deadline. Where it is not installed, nothing is known at once.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/time.h"

namespace ddprun::agent {

// Calls `done` once from the loop, with one text for each worker: "GPU 3 at 100 %"; empty: nothing
// is known. A worker's children use GPUs for it. `limit`: when the answer must come.
void gpus_in_use(boost::asio::io_context& loop, const std::vector<std::int64_t>& workers,
                 Duration limit, std::function<void(std::vector<std::string>)> done);

}  // namespace ddprun::agent
