// SaveCopier: copies tensors into the memory of a snapshot, where its files are laid out.
//
// From host memory it copies at once. From a GPU the copies are on a stream of their own, into
// pinned memory, beside the program's work: copy() returns before they are done, settle() waits for
// them.
//
// Threads: copy() and before_change() from the program's; reserve() and settle() from any, one at a
// time for each Memory.
#pragma once

#include <optional>
#include <vector>

#include "trainer/gpu/gpu_copier.h"
#include "trainer/snapshot/folder/snapshot.h"

namespace ddprun::trainer {

// Where tensors on a GPU come from.
struct GpuTensors {
    GpuStream stream = nullptr;  // whose work writes the tensors; copies come behind it
    // Whether the stream goes on beside the copies. Then the program calls before_change() in front
    // of what writes the tensors again.
    bool beside = false;
};

class SaveCopier {
  public:
    // The memory of one snapshot: a buffer for each of this rank's files, pinned if it is for
    // tensors on a GPU. Movable.
    struct Memory {
        struct File {
            PageBuffer pages;
            PinnedPages pinned;  // behind the pages, so that it ends before them
        };
        std::vector<File> files;
        GpuEvent copied;  // none: all copies are done
    };

    // By `copy`, empty: memcpy; or from the current GPU. Errors: unavailable.
    static Result<SaveCopier> make(CopyTensor copy, const std::optional<GpuTensors>& gpu);

    // Makes room for files of these tensors. Errors: unavailable.
    Result<void> reserve(Memory& memory, const std::vector<std::vector<TensorView>>& files) const;

    // Lays the files out, which takes room where there is too little. Copies may be under way also
    // after an error. Errors: those of lay_out(), unavailable.
    Result<void> copy(Memory& memory, const std::vector<std::vector<TensorView>>& files);

    // Waits until the memory has all bytes. Errors: unavailable.
    Result<void> settle(Memory& memory) const;

    // What is given to `stream` from now on comes behind all copies so far. Does not wait. Errors:
    // unavailable.
    Result<void> before_change(GpuStream stream) const;

  private:
    struct Gpu {
        GpuTensors tensors;
        int index = 0;
        GpuCopier copier;
        GpuEvent last;
    };
    Result<void> lay_out_all(Memory& memory, const std::vector<std::vector<TensorView>>& files,
                             const CopyTensor& copy) const;

    CopyTensor copy_;
    std::optional<Gpu> gpu_;
};

}  // namespace ddprun::trainer
