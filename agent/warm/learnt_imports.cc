// Puts together what this job and the last one have seen.
#include "agent/warm/learnt_imports.h"

#include <unistd.h>

#include <utility>

#include "base/system/careful_open.h"
#include "base/system/small_file.h"

namespace ddprun::agent::warm {
namespace {

// Longer than the records of any program.
constexpr std::size_t kMostRecord = std::size_t{16} << 20;

}  // namespace

LearntImports::LearntImports(boost::asio::io_context& loop, FileThread& files,
                             const PythonCommand& command,
                             const std::map<std::string, std::string>& environment)
    : files_(files), memory_(loop, command, environment) {}

void LearntImports::recall(std::function<void()> done) {
    recalling_ = true;
    memory_.read([this, done = std::move(done),
                  alive = std::weak_ptr(alive_)](std::optional<KnownImports> known) {
        if (!alive.lock()) return;
        recalling_ = false;
        if (known) {
            imports_.add(known->imports);
            left_out_.insert(left_out_.end(), known->left_out.begin(), known->left_out.end());
        }
        done();
    });
}

// A worker may put anything in their place.
void LearntImports::read_records(std::vector<std::string> records, std::function<void()> done) {
    auto texts = std::make_shared<std::vector<std::string>>();
    files_.post(
        [texts, records = std::move(records)] {
            for (const std::string& record : records) {
                const Result<UniqueFd> file = open_to_read(record);
                if (!file) continue;
                texts->push_back(read_bounded(file->get(), kMostRecord));
                ::unlink(record.c_str());
            }
        },
        [this, texts, done = std::move(done), alive = std::weak_ptr(alive_)] {
            if (!alive.lock()) return;
            for (const std::string& text : *texts) {
                imports_.add(text);
                own_.add(text);
            }
            done();
        });
}

Words LearntImports::plan(std::size_t first) const {
    Words plan;
    for (const std::string& name : left_out_) plan.insert(plan.end(), {"leave", name});
    for (std::size_t i = first; i < size(); ++i)
        plan.insert(plan.end(),
                    {"import", imports_.imports()[i].name + "\t" + imports_.imports()[i].file});
    return plan;
}

void LearntImports::proven(bool write) {
    proven_ = true;
    if (write) memory_.write({imports_.imports(), left_out_});
}

bool LearntImports::forget() {
    if (proven_ || size() == own_.imports().size()) return false;
    memory_.forget();
    imports_ = own_;
    left_out_.clear();
    return true;
}

}  // namespace ddprun::agent::warm
