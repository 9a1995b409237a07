// Which of PyTorch's flight recorders can be asked (flight_recorders.h), and whether NCCL's RAS
// gets a port (nccl/ras_port.h). Pure value.
#pragma once

namespace ddprun::agent {

struct RecorderOptions {
    bool opens_server = false;  // --flight-recorder: each worker opens a server for it
    bool nccl_pipe = false;     // NCCL's may make a pipe
    bool ras_port = false;      // NCCL_RAS_ADDR is set for each job
    bool operator==(const RecorderOptions&) const = default;
};

}  // namespace ddprun::agent
