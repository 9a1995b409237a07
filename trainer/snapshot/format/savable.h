// What cannot be saved, because a file could not say it, or would say something else: names,
// tensors and metadata are looked at before anything is written.
//
// Pure. Errors: usage; the sentence names the tensor or the key.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/snapshot/format/metadata.h"
#include "trainer/tensors/tensor_view.h"

namespace ddprun::trainer {

// A name must be UTF-8 without control characters, must not be "__metadata__", which safetensors
// keeps for itself, and must not end as the name of a slice in a file does ("w[0:4]").
Result<void> check_name(const std::string& tensor);

// The names; that none occurs twice, that the data fit their shapes, and that slices lie in their
// tensors.
Result<void> check_savable(const std::vector<TensorView>& tensors);

// Keys and values must be UTF-8. (Bytes are stored as text by text_of().)
Result<void> check_savable(const Metadata& metadata);

}  // namespace ddprun::trainer
