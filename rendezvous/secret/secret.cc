// The rules by which leader and nodes choose the secret of a job.
#include "rendezvous/secret/secret.h"

#include <openssl/crypto.h>

#include <boost/algorithm/hex.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/system/private_file.h"
#include "base/system/random_bytes.h"
#include "base/system/secret_text.h"
#include "rendezvous/model/secret_file.h"
#include "rendezvous/secret/munge.h"
#include "rendezvous/secret/secret_strength.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kLeastSecret = 16;
// Credentials that are kept, with some hundred bytes each. Each new ddprun on a node has another.
constexpr std::size_t kMostDecoded = 16'384;
// What the user can do, inside a job and for a rendezvous outside of jobs.
constexpr const char* kFix =
    "give all nodes one --secret-file=PATH, or start munged, or choose a shared "
    "--ledger=directory:PATH (--identity=none lets anybody join)";
constexpr const char* kFixOutside =
    "give ddprun-rendezvous and all nodes one --secret-file=PATH, or start munged here and there";

// In hexadecimal, because it passes through programs and text files. 32 bytes: too many to guess.
SecretText random_secret() {
    const SecretText bytes = SecretText::out_of(random_bytes(32));
    std::string text;
    // No larger buffer follows a smaller one, in which half the secret would stay.
    text.reserve(2 * bytes.size());
    boost::algorithm::hex_lower(std::string_view(bytes), std::back_inserter(text));
    return SecretText::out_of(std::move(text));
}

Error refused(std::string sentence) { return Error(ErrorCode::refused, std::move(sentence)); }

constexpr const char* kMakesOne = "head -c 32 /dev/urandom | base64 makes one";

// A short secret could be guessed offline: a listener sees the proofs that were made with it.
Result<SecretText> long_enough(SecretText secret, const std::string& where,
                               const char* fix = kMakesOne) {
    if (secret.size() >= kLeastSecret) return secret;
    return refused(where + " has " + std::to_string(secret.size()) + " bytes (at least " +
                   std::to_string(kLeastSecret) + "); " + fix);
}

// For a secret that a person may have written. The others are made by ddprun.
Result<SecretText> hard_to_guess(SecretText secret, const std::string& where) {
    const double bits = guess_bits(secret);
    if (bits >= kLeastGuessBits) return secret;
    return refused("the secret in " + where + " can be guessed: its " +
                   std::to_string(secret.size()) + " bytes count " +
                   std::to_string(static_cast<int>(bits)) + " bits (at least " +
                   std::to_string(static_cast<int>(kLeastGuessBits)) + "); " + kMakesOne);
}

// Reads the folder's secret, or creates it. Another node may do so at the same moment. The file is
// created once and never removed, so every leader of the job uses the same secret. A link in its
// place is refused: it could lead to a file that an attacker chose.
Result<SecretText> folder_secret(const std::string& path) {
    auto found = read_private_file(path, Links::refuse);
    if (!found && found.error().code() == ErrorCode::not_found) {
        const auto made = create_private_file(path, random_secret());
        if (!made && made.error().code() != ErrorCode::exists) return made.error();
        found = read_private_file(path, Links::refuse);
    }
    if (!found) return found.error();
    return long_enough(*found, path, "remove it");
}

}  // namespace

Result<SecretText> read_secret_file(const std::string& path) {
    auto text = read_private_file(path, Links::follow);
    if (text) text = long_enough(*text, path);
    if (text) text = hard_to_guess(*text, path);
    if (text) return *text;
    return usage_error("--secret-file: " + text.error().sentence());
}

struct Secrets::State : std::enable_shared_from_this<State> {
    State(asio::io_context& loop, FileThread& files, IdentityConfig config)
        : loop(loop), files(files), config(std::move(config)) {}

    // Calls `done` from the loop, if this object still exists then.
    template <class T>
    void answer(const Done<T>& done, Result<T> result) {
        asio::post(loop, [weak = weak_from_this(), done, result = std::move(result)] {
            const auto self = weak.lock();
            if (self && !self->over) done(result);
        });
    }

    // Whether MUNGE is needed at all.
    bool may_munge() const { return config.mode != IdentityMode::none && config.secret.empty(); }
    void with_credential(std::function<void()> next);
    void with_look(Done<std::string> next);
    Result<std::string> looked() const;
    void own(const Done<OwnSecret>& done);
    void own_file(const Done<OwnSecret>& done);
    void decode(const std::string& text, const Done<SecretText>& done);
    void read_in_folder(const std::string& name, const Done<SecretText>& done);
    std::string path_of(const std::string& name) const;

    asio::io_context& loop;
    FileThread& files;
    const IdentityConfig config;
    bool over = false;
    std::string own_name{kSecretFile};  // for a leader: the file in the ledger's folder
    const SecretText munged_secret = random_secret();
    // With munged_secret in it; empty: not asked yet.
    std::optional<Result<std::string>> credential;
    std::vector<std::function<void()>> waiting;  // for the credential
    // Credentials of leaders and of members, and their content. All are of our own user.
    std::map<std::string, SecretText> decoded;
};

// Calls munge once; everybody who needs the credential waits for this call.
void Secrets::State::with_credential(std::function<void()> next) {
    if (credential) return next();
    waiting.push_back(std::move(next));
    if (waiting.size() > 1) return;
    asio::co_spawn(
        loop, munge(munged_secret),
        [self = shared_from_this()](std::exception_ptr failed, Result<std::string> made) {
            if (failed) std::rethrow_exception(failed);  // no memory: ends the process
            self->credential = std::move(made);
            for (const auto& one : std::exchange(self->waiting, {}))
                if (!self->over) one();
        });
}

// What this node can prove with. The credential has been asked for by now, if it is needed.
Result<std::string> Secrets::State::looked() const {
    if (!config.secret.empty()) return std::string("--secret-file");
    if (config.mode == IdentityMode::none) return std::string();
    if (*credential) return std::string("MUNGE");
    if (!config.folder.empty()) return std::string("a file in the ledger's folder");
    const std::string why = " MUNGE (" + credential->error().sentence() + ")";
    return Error(ErrorCode::unavailable,
                 config.outside
                     ? "there is no --secret-file and no" + why + "; " + kFixOutside
                     : "there is no --secret-file, no" + why + " and no ledger folder; " + kFix);
}

void Secrets::State::with_look(Done<std::string> next) {
    if (!may_munge()) return next(looked());
    with_credential([this, next = std::move(next)] { next(looked()); });
}

// Each source in the order of secret.h.
void Secrets::State::own(const Done<OwnSecret>& done) {
    if (!config.secret.empty()) return answer<OwnSecret>(done, OwnSecret{config.secret, {}, {}});
    with_look([this, done](const Result<std::string>& found) {
        if (found && found->empty()) return answer<OwnSecret>(done, OwnSecret{});
        if (found && *credential)
            return answer<OwnSecret>(done, OwnSecret{munged_secret, **credential, {}});
        if (found) return own_file(done);
        if (config.mode == IdentityMode::require) return answer<OwnSecret>(done, found.error());
        answer<OwnSecret>(done, OwnSecret{});
    });
}

// "secret" is in PATH, "secret-DIGEST" in PATH-DIGEST.
std::string Secrets::State::path_of(const std::string& name) const {
    return config.folder + name.substr(kSecretFile.size()) + "/" + name;
}

void Secrets::State::own_file(const Done<OwnSecret>& done) {
    const auto result = std::make_shared<Result<SecretText>>(Error());
    files.post([result, path = path_of(own_name)] { *result = folder_secret(path); },
               [weak = weak_from_this(), result, done] {
                   const auto self = weak.lock();
                   if (!self || self->over) return;
                   if (*result) return done(OwnSecret{**result, {}, self->own_name});
                   done(Error(ErrorCode::unavailable,
                              "no secret for the agent link: " + result->error().sentence() + "; " +
                                  kFix));
               });
}

// Decodes a credential. A ddprun has the same one for all connections to it, so the result is kept:
// unmunge is a process.
void Secrets::State::decode(const std::string& text, const Done<SecretText>& done) {
    if (const auto known = decoded.find(text); known != decoded.end())
        return answer<SecretText>(done, known->second);
    asio::co_spawn(
        loop, unmunge(text),
        [self = shared_from_this(), text, done](std::exception_ptr failed, Result<SecretText> got) {
            if (failed) std::rethrow_exception(failed);  // no memory: ends the process
            if (got) got = long_enough(*got, "it");
            if (got && self->decoded.size() >= kMostDecoded) self->decoded.clear();
            if (got) self->decoded.emplace(text, *got);
            if (self->over) return;
            if (got) return done(*got);
            done(refused("its MUNGE credential does not count: " + got.error().sentence()));
        });
}

void Secrets::State::read_in_folder(const std::string& name, const Done<SecretText>& done) {
    // The name comes from the network. With this prefix, and without slashes
    // (handshake_messages.h), it cannot name another file of the user.
    if (!name.starts_with(kSecretFile))
        return answer<SecretText>(done, refused("\"" + name + "\" is no file with a secret"));
    const auto result = std::make_shared<Result<SecretText>>(Error());
    files.post(
        [result, path = path_of(name)] {
            *result = read_private_file(path, Links::refuse);
            if (*result) *result = long_enough(**result, path);
        },
        [weak = weak_from_this(), result, done] {
            const auto self = weak.lock();
            if (!self || self->over) return;
            if (*result) return done(*result);
            done(refused("its secret cannot be read here: " + result->error().sentence()));
        });
}

Secrets::Secrets(asio::io_context& loop, FileThread& files, IdentityConfig config)
    : state_(std::make_shared<State>(loop, files, std::move(config))) {
    // The host's openssl.cnf does not concern a static binary, and reading it takes time.
    ::OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
}

Secrets::~Secrets() { state_->over = true; }

bool Secrets::has_source() const {
    return !state_->config.secret.empty() || !state_->config.folder.empty();
}

void Secrets::look(Done<std::string> done) {
    state_->with_look([state = state_.get(), done = std::move(done)](Result<std::string> found) {
        state->answer<std::string>(done, std::move(found));
    });
}

void Secrets::ledger_lies_in(const std::string& folder) {
    const std::string& asked = state_->config.folder;
    if (!asked.empty() && folder.starts_with(asked))
        state_->own_name = std::string(kSecretFile) + folder.substr(asked.size());
}

void Secrets::own(Done<OwnSecret> done) { state_->own(done); }

void Secrets::of_leader(const Challenge& challenge, Done<SecretText> done) {
    const IdentityConfig& config = state_->config;
    // A Challenge that names neither a credential nor a file means --secret-file.
    const bool named = !challenge.credential.empty() || !challenge.file.empty();
    if (!config.secret.empty() && !named) return state_->answer<SecretText>(done, config.secret);
    if (!config.secret.empty())
        return state_->answer<SecretText>(
            done, refused("it was not given the --secret-file that this node has"));
    if (!challenge.credential.empty()) return state_->decode(challenge.credential, done);
    if (!named)
        return state_->answer<SecretText>(
            done, refused("it asks for the secret of a --secret-file, which this node has not been "
                          "given"));
    if (!config.folder.empty()) return state_->read_in_folder(challenge.file, done);
    state_->answer<SecretText>(
        done, refused("it asks for a secret in its ledger's folder, and this node has none; give "
                      "all nodes the same --ledger"));
}

void Secrets::of_open_leader(Done<void> done) {
    state_->with_look([state = state_.get(), done = std::move(done)](Result<std::string> found) {
        // A node that could prove something must not be talked out of it; one without any secret
        // follows, unless --identity=require.
        const bool follow = found ? found->empty() : state->config.mode != IdentityMode::require;
        if (follow) return state->answer<void>(done, {});
        state->answer<void>(
            done, found
                      ? refused("it asks for no proof of identity, though this node could give one "
                                "(" +
                                *found + "); --identity=none follows it all the same")
                      : refused(found.error().sentence()));
    });
}

}  // namespace ddprun::rendezvous
