// How the files of one snapshot are written. Pure.
#pragma once

namespace ddprun::trainer {

struct WritePlan {
    int edition = 0;         // see SnapshotName::tensors
    bool read_back = false;  // each file is read again and compared after it was written
};

}  // namespace ddprun::trainer
