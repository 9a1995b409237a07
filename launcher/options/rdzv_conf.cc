// The table of torchrun's keys and the reader for --rdzv-conf.
#include "launcher/options/rdzv_conf.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/command_line/nearest.h"
#include "launcher/options/option_values.h"

namespace ddprun::launcher {
namespace {

using std::chrono::milliseconds;

// How the value of a key is checked.
enum class Form { time, positive_time, count, yes_or_no, text };

// All keys of torchrun's back ends. Only the first six have an effect here.
struct Key {
    std::string_view name;
    Form form;
    bool used;
};
constexpr Key kKeys[] = {
    {"join_timeout", Form::positive_time, true},
    {"last_call_timeout", Form::time, true},
    {"keep_alive_interval", Form::positive_time, true},
    {"keep_alive_max_attempt", Form::count, true},
    {"is_host", Form::yes_or_no, true},
    {"timeout", Form::positive_time, true},
    {"close_timeout", Form::time, false},
    {"heartbeat_timeout", Form::time, false},
    {"cas_backoff_max_seconds", Form::time, false},
    {"read_timeout", Form::positive_time, false},
    {"store_type", Form::text, false},
    {"rank", Form::text, false},
    {"protocol", Form::text, false},
    {"etcd_prefix", Form::text, false},
    {"ssl_cert", Form::text, false},
    {"ssl_cert_key", Form::text, false},
    {"ca_cert", Form::text, false},
    {"cert", Form::text, false},
    {"key", Form::text, false},
    {"cacert", Form::text, false},
};

// The words that torchrun accepts.
Result<bool> read_bool(std::string_view text) {
    std::string lower(text);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    for (const char* yes : {"1", "true", "t", "yes", "y"})
        if (lower == yes) return true;
    for (const char* no : {"0", "false", "f", "no", "n"})
        if (lower == no) return false;
    return usage_error("not a yes or no; give true or false");
}

Result<Duration> read_time(std::string_view text, Form form) {
    auto time = read_seconds(text);
    if (time && *time == milliseconds(0) && form == Form::positive_time)
        return usage_error("too short; give more than 0 seconds");
    return time;
}

// Three cases: a key of torchrun, a key that is close to one, or a key that nobody knows.
std::string without_effect(const std::string& key) {
    std::array<std::string_view, std::size(kKeys)> names;
    std::ranges::transform(kKeys, names.begin(), &Key::name);
    const std::string_view meant = nearest(key, names);
    return "--rdzv-conf: the key " + key + " has no effect" +
           (std::ranges::find(names, key) != names.end() ? " here"
            : meant.empty()                              ? ", here or with torchrun"
                            : "; did you mean " + std::string(meant) + "?");
}

// Collects the keys. The lease is a product of two keys, so it is made at the end.
class Reader {
  public:
    std::optional<Error> take(const std::string& name, std::string_view value) {
        const auto key = std::ranges::find(kKeys, name, &Key::name);
        if (key == std::end(kKeys)) {
            conf_.warnings.push_back(without_effect(name));
            return std::nullopt;
        }
        if (auto error = read(*key, value))
            return usage_error(name + "=" + std::string(value) + " is " + error->sentence());
        // After read(): a wrong value is an error even where the key has no effect, as with
        // torchrun.
        if (!key->used) conf_.warnings.push_back(without_effect(name));
        return std::nullopt;
    }

    // The lease is keep_alive_interval times keep_alive_max_attempt. If one of them is missing,
    // torchrun's default stands in for it: 5 s, 3 attempts.
    RdzvConf finish() {
        if (interval_ || attempts_)
            conf_.lease = interval_.value_or(milliseconds(5000)) * attempts_.value_or(3);
        return std::move(conf_);
    }

  private:
    std::optional<Error> read(const Key& key, std::string_view value) {
        if (key.form == Form::yes_or_no) {
            auto yes = read_bool(value);
            if (!yes) return yes.error();
            conf_.is_host = *yes;
        } else if (key.form == Form::count) {
            auto count = read_int(value, 1, 10'000);
            if (!count) return count.error();
            attempts_ = *count;
        } else if (key.form != Form::text) {
            auto time = read_time(value, key.form);
            if (!time) return time.error();
            if (std::optional<Duration>* target = target_of(key.name)) *target = *time;
        }
        return std::nullopt;
    }

    // Null: the time is checked and not used.
    std::optional<Duration>* target_of(std::string_view name) {
        if (name == "join_timeout") return &conf_.join_timeout;
        if (name == "last_call_timeout") return &conf_.last_call;
        if (name == "keep_alive_interval") return &interval_;
        if (name == "timeout") return &conf_.static_timeout;
        return nullptr;
    }

    RdzvConf conf_;
    std::optional<Duration> interval_;
    std::optional<int> attempts_;
};

}  // namespace

Result<RdzvConf> read_rdzv_conf(std::string_view text) {
    // Some scripts put quotes within quotes, so that one pair arrives here.
    if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') &&
        text.back() == text.front())
        text = text.substr(1, text.size() - 2);
    Reader reader;
    for (;;) {
        const std::size_t comma = text.find(',');
        const std::string_view part = text.substr(0, comma);
        const std::size_t equals = part.find('=');
        const std::string key(trimmed(part.substr(0, equals)));
        const std::string_view value =
            equals == std::string_view::npos ? "" : trimmed(part.substr(equals + 1));
        // An empty value usually comes from a variable that is not set.
        if (key.empty() || value.empty()) return usage_error("not KEY=VALUE,KEY=VALUE,…");
        if (auto error = reader.take(key, value)) return *error;
        if (comma == std::string_view::npos) return reader.finish();
        text.remove_prefix(comma + 1);
    }
}

}  // namespace ddprun::launcher
