#include "agent/config/config_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <toml++/toml.h>
#include <algorithm>
#include <filesystem>

#include "agent/config/config_fields.h"
#include "agent/config/device_uuid.h"
#include "base/path.h"

namespace spillway::agent {
namespace {

struct TermsPair {
  const char *less_key, *most_key;
  std::optional<int64_t> TermsChange::*less, TermsChange::*most;
};
using T = TermsChange;
constexpr TermsPair kTermsPairs[] = {
    {"guaranteed", "limit", &T::guaranteed_bytes, &T::limit_bytes},
    {"floor", "limit", &T::floor_bytes, &T::limit_bytes},
    {"host_guaranteed", "host_limit", &T::host_guaranteed_bytes, &T::host_limit_bytes},
    {"link_guaranteed", "link_limit", &T::link_guaranteed_permille, &T::link_limit_permille}};

constexpr char kNameLetters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
constexpr int64_t kWrong = 0;  // the error is reported already

// Goes on after an error, to report all of them.
class FileReader {
 public:
  FileReader(std::string path, ConfigResult* result) : path_(std::move(path)), result_(*result) {}

  void Read(MainFile presence) {
    struct stat facts {};
    if (stat(path_.c_str(), &facts) != 0) {
      if (errno != ENOENT || presence == MainFile::kMustBeThere) SayUnreadable(strerror(errno));
      return;
    }
    if (S_ISDIR(facts.st_mode)) return SayUnreadable(strerror(EISDIR));
    result_.files.push_back(path_);
    try {
      const toml::table root = toml::parse_file(path_);
      for (const auto& [name, node] : root) ReadTable(std::string(name.str()), name.source(), node);
    } catch (const toml::parse_error& error) {
      Say(error.source(), std::string(error.description()));
    }
  }

 private:
  void Say(const toml::source_region& where, const std::string& what) {
    result_.errors.push_back(path_ + ":" + std::to_string(where.begin.line) + ": " + what);
  }
  void SayUnreadable(const std::string& why) {
    result_.errors.push_back(path_ + " cannot be read: " + why);
  }
  void SayUnknown(const toml::source_region& where, const std::string& what,
                  const std::string& name, const std::vector<std::string>& names) {
    const std::string nearest = Nearest(name, names);
    Say(where, "there is no " + what + " '" + name + "'" +
                   (nearest.empty() ? "" : "; do you mean '" + nearest + "'?"));
  }

  void ReadTable(const std::string& name, const toml::source_region& where,
                 const toml::node& node) {
    static const std::vector<std::string> tables = {
        "agent", "http",   "devices",  "native_limits", "host",   "link", "planning", "arbiter",
        "turns", "limits", "defaults", "rule",          "device", "user", "account"};
    if (std::find(tables.begin(), tables.end(), name) == tables.end())
      return SayUnknown(where, "table", name, tables);
    const bool is_list = name == "rule" || name == "device" || name == "user" || name == "account";
    if (is_list != node.is_array_of_tables() || (!is_list && !node.is_table()))
      return Say(where, is_list ? "write [[" + name + "]]" : "write [" + name + "]");
    if (name == "defaults") return ReadTerms(*node.as_table(), {}, &result_.config.defaults);
    if (name == "rule") {
      for (const toml::node& rule : *node.as_array()) ReadRule(*rule.as_table());
    } else if (name == "device") {
      for (const toml::node& device : *node.as_array()) ReadDevice(*device.as_table());
    } else if (name == "user") {
      for (const toml::node& user : *node.as_array()) ReadUser(*user.as_table());
    } else if (name == "account") {
      for (const toml::node& account : *node.as_array()) ReadAccount(*account.as_table());
    } else {
      ReadFields(name, *node.as_table());
    }
  }

  void ReadFields(const std::string& name, const toml::table& table) {
    for (const auto& [key, node] : table) {
      std::vector<std::string> known;
      const ConfigField* found = nullptr;
      for (const ConfigField& field : ConfigFields()) {
        if (field.table != name) continue;
        known.push_back(field.key);
        if (field.key == key.str()) found = &field;
      }
      if (found == nullptr) {
        SayUnknown(key.source(), "setting", std::string(key.str()), known);
      } else {
        ReadField(*found, node);
      }
    }
  }

  void ReadField(const ConfigField& field, const toml::node& node) {
    const FieldPlace place = field.place(result_.config);
    if (field.kind == FieldKind::kText) {
      if (const auto* text = node.as_string()) {
        *std::get<std::string*>(place) = text->get();
        const base::Status checked = field.check == nullptr ? base::Ok() : field.check(text->get());
        if (!checked.ok()) Say(node.source(), checked.text());
      } else {
        Say(node.source(), std::string(field.key) + " is a text");
      }
    } else if (field.kind == FieldKind::kFlag) {
      if (const auto* flag = node.as_boolean()) {
        *std::get<bool*>(place) = flag->get();
      } else {
        Say(node.source(), std::string(field.key) + " is true or false");
      }
    } else if (field.kind == FieldKind::kNumbers) {
      ReadNumbers(field, node, std::get<std::vector<int64_t>*>(place));
    } else if (const auto number =
                   ReadNumber(field.key, field.kind, field.least, field.most, node)) {
      *std::get<int64_t*>(place) = *number;
    }
  }

  void ReadNumbers(const ConfigField& field, const toml::node& node, std::vector<int64_t>* out) {
    ReadNumbers(field.key, field.least, field.most, node, out);
  }
  void ReadNumbers(const char* key, int64_t least, int64_t most, const toml::node& node,
                   std::vector<int64_t>* out) {
    const toml::array* list = node.as_array();
    if (list == nullptr) return Say(node.source(), std::string(key) + " is a list of numbers");
    out->clear();
    for (const toml::node& entry : *list) {
      if (const auto number = ReadNumber(key, FieldKind::kNumber, least, most, entry))
        out->push_back(*number);
    }
  }

  std::optional<int64_t> ReadNumber(const char* key, FieldKind kind, int64_t least, int64_t most,
                                    const toml::node& node) {
    std::optional<int64_t> number;
    if (kind == FieldKind::kTurns) return ReadTurns(key, node);
    if (const auto* integer = node.as_integer()) number = integer->get();
    if (const auto* text = node.as_string(); text != nullptr && kind == FieldKind::kBytes)
      number = ParseBytes(text->get());
    if (const auto* text = node.as_string(); text != nullptr && kind == FieldKind::kSize) {
      number = ParseSizeOrShare(text->get());
      if (number && *number < 0) return number;
    }
    if (!number) {
      Say(node.source(),
          std::string(key) + (kind == FieldKind::kBytes  ? " is a size like \"8GiB\""
                              : kind == FieldKind::kSize ? " is a size like \"8GiB\" or \"25%\""
                                                         : " is a number"));
      return std::nullopt;
    }
    if (*number >= least && *number <= most) return number;
    Say(node.source(),
        std::string(key) + " is between " + std::to_string(least) + " and " + std::to_string(most));
    return std::nullopt;
  }

  std::optional<int64_t> ReadTurns(const char* key, const toml::node& node) {
    const std::optional<int64_t> turns = ParseTurns(node.value_or(std::string_view()));
    if (!turns) Say(node.source(), std::string(key) + " is \"never\", \"auto\" or \"always\"");
    return turns;
  }

  // All keys but `others` are terms.
  void ReadTerms(const toml::table& table, const std::vector<std::string>& others,
                 TermsChange* terms) {
    std::vector<std::string> known = others;
    for (const TermsField& field : TermsFields()) known.push_back(field.key);
    for (const auto& [key, node] : table) {
      if (std::find(others.begin(), others.end(), key.str()) != others.end()) continue;
      const auto field =
          std::find_if(TermsFields().begin(), TermsFields().end(),
                       [&, name = key.str()](const TermsField& one) { return one.key == name; });
      if (field == TermsFields().end()) {
        SayUnknown(key.source(), "setting", std::string(key.str()), known);
      } else if (const auto number =
                     ReadNumber(field->key, field->kind, field->least, field->most, node)) {
        terms->*(field->place) = *number;
      }
    }
    for (const TermsPair& pair : kTermsPairs) CheckPair(table, *terms, pair);
  }

  // A share and bytes compare differently on each device.
  static bool IsMore(int64_t less, int64_t most) {
    return (less < 0) == (most < 0) && (less < 0 ? less < most : less > most);
  }
  // Checks one place alone: a guarantee set elsewhere is bounded by the final limit.
  void CheckPair(const toml::table& table, const TermsChange& terms, const TermsPair& pair) {
    const std::optional<int64_t> less = terms.*pair.less, most = terms.*pair.most;
    const toml::node* const node = table.get(pair.less_key);
    if (pair.less == &TermsChange::floor_bytes && less == kDefaultFloorBytes)
      return;  // it is cut to a smaller limit
    if (node != nullptr && less && most && IsMore(*less, *most))
      Say(node->source(), std::string(pair.less_key) + " is more than " + pair.most_key);
  }

  void ReadRule(const toml::table& table) {
    JobRule rule;
    if (const toml::node* job = table.get("job")) {
      if (const auto* text = job->as_string()) {
        rule.job = text->get();
      } else {
        Say(job->source(), "job is a text like \"slurm-*\"");
      }
    }
    if (const toml::node* uid = table.get("uid"))
      rule.uid = ReadNumber("uid", FieldKind::kNumber, 0, UINT32_MAX, *uid);
    ReadTerms(table, {"job", "uid"}, &rule.terms);
    result_.config.rules.push_back(rule);
  }

  void ReadOwner(const toml::table& table, const std::vector<std::string>& others,
                 OwnerChange* terms) {
    std::vector<std::string> known = others;
    for (const OwnerField& field : OwnerFields()) known.push_back(field.key);
    for (const auto& [key, node] : table) {
      if (std::find(others.begin(), others.end(), key.str()) != others.end()) continue;
      const auto field =
          std::find_if(OwnerFields().begin(), OwnerFields().end(),
                       [&, name = key.str()](const OwnerField& one) { return one.key == name; });
      if (field == OwnerFields().end()) {
        SayUnknown(key.source(), "setting", std::string(key.str()), known);
      } else if (const auto number =
                     ReadNumber(field->key, field->kind, field->least, field->most, node)) {
        terms->*(field->place) = *number;
      }
    }
    if (terms->guaranteed_bytes && terms->limit_bytes &&
        IsMore(*terms->guaranteed_bytes, *terms->limit_bytes))
      Say(table.source(), "guaranteed is more than limit");
  }

  void ReadUser(const toml::table& table) {
    UserRule rule;
    if (const toml::node* uid = table.get("uid"))
      rule.uid = ReadNumber("uid", FieldKind::kNumber, 0, UINT32_MAX, *uid);
    ReadOwner(table, {"uid"}, &rule.terms);
    result_.config.users.push_back(rule);
  }

  void ReadAccount(const toml::table& table) {
    AccountSetting account;
    if (const toml::node* name = table.get("name"); name != nullptr && name->is_string())
      account.name = name->as_string()->get();
    if (const toml::node* uids = table.get("uids"))
      ReadNumbers("uids", 0, UINT32_MAX, *uids, &account.uids);
    ReadOwner(table, {"name", "uids"}, &account.terms);
    if (account.name.empty()) Say(table.source(), "an account needs a name");
    if (account.name.find_first_not_of(kNameLetters) != account.name.npos)
      Say(table.source(), "the name of an account is of letters, digits, '.', '_' and '-'");
    for (const AccountSetting& other : result_.config.accounts) {
      if (other.name == account.name)
        Say(table.source(), "there are two accounts '" + account.name + "'");
      for (const int64_t uid : account.uids) {
        if (std::find(other.uids.begin(), other.uids.end(), uid) != other.uids.end())
          Say(table.source(),
              "user " + std::to_string(uid) + " is in account '" + other.name + "' already");
      }
    }
    result_.config.accounts.push_back(account);
  }

  void ReadDevice(const toml::table& table) {
    DeviceSetting device;
    std::optional<protocol::DeviceUuid> uuid;
    for (const auto& [key, node] : table) {
      if (key.str() == "uuid") {
        device.uuid = node.value_or(std::string());
        uuid = ParseUuid(device.uuid);
        if (!uuid)
          Say(node.source(),
              "uuid is a text like \"GPU-12345678-1234-1234-1234-123456789abc\"; see: nvidia-smi "
              "-L");
      } else if (key.str() == "memory") {
        device.memory_bytes =
            ReadNumber("memory", FieldKind::kSize, 1, int64_t{1} << 56, node).value_or(kWrong);
      } else if (key.str() == "turns") {
        device.turns = ReadTurns("turns", node);
      } else {
        SayUnknown(key.source(), "setting", std::string(key.str()), {"uuid", "memory", "turns"});
      }
    }
    if (!table.contains("uuid") || !table.contains("memory"))
      Say(table.source(), "a device needs uuid and memory");
    for (const DeviceSetting& other : result_.config.devices) {
      if (uuid && ParseUuid(other.uuid) == uuid)
        Say(table.source(), "device " + device.uuid + " is configured already");
    }
    result_.config.devices.push_back(device);
  }

  const std::string path_;
  ConfigResult& result_;
};

std::vector<std::string> DropIns(const std::string& path, std::vector<std::string>* errors) {
  std::vector<std::string> files;
  std::error_code error;
  const auto folder = std::filesystem::path(path).parent_path() / "spillway.d";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  if (error && error != std::errc::no_such_file_or_directory)
    errors->push_back(folder.string() + " cannot be read: " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text)
    quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "\"";
}

std::string Show(const ConfigField& field, const Config& config) {
  // Only read, despite the const_cast.
  const FieldPlace place = field.place(const_cast<Config&>(config));
  if (const auto* text = std::get_if<std::string*>(&place)) return Quoted(**text);
  if (const auto* flag = std::get_if<bool*>(&place)) return **flag ? "true" : "false";
  if (const auto* numbers = std::get_if<std::vector<int64_t>*>(&place)) {
    std::string list;
    for (int64_t number : **numbers) list += (list.empty() ? "" : ", ") + std::to_string(number);
    return "[" + list + "]";
  }
  const int64_t number = *std::get<int64_t*>(place);
  if (field.kind == FieldKind::kBytes || field.kind == FieldKind::kSize)
    return "\"" + ShowSize(number) + "\"";
  if (field.most == 0777) {
    char octal[16];
    std::snprintf(octal, sizeof octal, "0o%llo", static_cast<unsigned long long>(number));
    return octal;
  }
  return std::to_string(number);
}

std::string ShowValue(FieldKind kind, int64_t value) {
  if (kind == FieldKind::kTurns) return Quoted(ShowTurns(value));
  const bool is_size = kind == FieldKind::kSize || kind == FieldKind::kBytes;
  return is_size ? "\"" + ShowSize(value) + "\"" : std::to_string(value);
}

template <class Terms, class Fields>
std::string ShowFields(const Terms& terms, const Fields& fields) {
  std::string text;
  for (const auto& field : fields) {
    const std::optional<int64_t>& value = terms.*(field.place);
    if (!value) continue;
    text += std::string(field.key) + " = " + ShowValue(field.kind, *value) + "\n";
  }
  return text;
}

std::string ShowTerms(const TermsChange& terms) { return ShowFields(terms, TermsFields()); }

std::string ShowUser(const UserRule& rule) {
  return "[[user]]\n" + (rule.uid ? "uid = " + std::to_string(*rule.uid) + "\n" : "") +
         ShowFields(rule.terms, OwnerFields());
}

std::string ShowAccount(const AccountSetting& account) {
  std::string uids;
  for (const int64_t uid : account.uids) uids += (uids.empty() ? "" : ", ") + std::to_string(uid);
  return "[[account]]\nname = \"" + account.name + "\"\nuids = [" + uids + "]\n" +
         ShowFields(account.terms, OwnerFields());
}

std::string ShowDevice(const DeviceSetting& device) {
  return "[[device]]\nuuid = \"" + device.uuid + "\"\nmemory = \"" + ShowSize(device.memory_bytes) +
         "\"\n" +
         (device.turns ? "turns = " + ShowValue(FieldKind::kTurns, *device.turns) + "\n" : "");
}

std::string ShowRule(const JobRule& rule) {
  return "[[rule]]\njob = " + Quoted(rule.job) + "\n" +
         (rule.uid ? "uid = " + std::to_string(*rule.uid) + "\n" : "") + ShowTerms(rule.terms);
}

// In the order of the file: later entries win.
std::vector<std::string> ShowLists(const Config& config) {
  std::vector<std::string> entries;
  for (const DeviceSetting& device : config.devices) entries.push_back(ShowDevice(device));
  for (const AccountSetting& account : config.accounts) entries.push_back(ShowAccount(account));
  for (const UserRule& rule : config.users) entries.push_back(ShowUser(rule));
  for (const JobRule& rule : config.rules) entries.push_back(ShowRule(rule));
  return entries;
}

std::string OnOneLine(std::string entry) {
  entry.pop_back();
  entry[entry.find('\n')] = ' ';
  for (size_t at = 0; (at = entry.find('\n', at)) != entry.npos;) entry.replace(at, 1, ", ");
  return entry;
}

// Entries that one side lacks. If only the order differs, all entries.
void AddListDifferences(std::vector<std::string> from, std::vector<std::string> to,
                        std::vector<std::string>* lines) {
  if (from == to) return;
  std::vector<std::string> gone = from, come = to;
  for (const std::string& entry : to) std::erase(gone, entry);
  for (const std::string& entry : from) std::erase(come, entry);
  if (gone.empty() && come.empty()) gone = std::move(from), come = std::move(to);
  for (const std::string& entry : gone) lines->push_back("no more: " + OnOneLine(entry));
  for (const std::string& entry : come) lines->push_back("new: " + OnOneLine(entry));
}

}  // namespace

std::vector<std::string> WrongHttpSettings(const Config& config) {
  std::vector<std::string> wrong;
  const bool is_guarded =
      config.http_open || !config.http_token_file.empty() || IsLoopback(config.http);
  if (!config.http.empty() && !is_guarded)
    wrong.push_back("[agent] http is " + config.http +
                    ", where other machines can look at this node's jobs: set [http] token_file, "
                    "or open = true if anybody may");
  if (config.http_certificate.empty() != config.http_key.empty())
    wrong.push_back("[http] certificate and key go together; set both, or none");
  return wrong;
}

std::vector<std::string> WrongJobSocketSettings(const Config& config, const std::string& file) {
  namespace fs = std::filesystem;
  if (!config.job_socket.starts_with('/')) return {};
  std::error_code ignored;
  const fs::path folder = fs::path(config.job_socket).parent_path();
  const std::string advice = ": give job_socket a folder of its own, such as /run/spillway/jobs";
  const std::pair<const char*, std::string> others[] = {
      {"the configuration", fs::absolute(file, ignored).string()},
      {"[agent] socket", config.socket},
      {"[agent] state", config.state},
      {"[planning] store", config.plan_store},
      {"[http] socket", config.http_socket},
      {"[http] token_file", config.http_token_file},
      {"[http] certificate", config.http_certificate},
      {"[http] key", config.http_key}};
  std::vector<std::string> wrong;
  for (const auto& [name, path] : others) {
    if (path.starts_with('/') && base::IsInFolder(path, folder))
      wrong.push_back(std::string(name) + " is in the folder of [agent] job_socket, " +
                      config.job_socket + ", which containers mount" + advice);
  }
  const fs::perms perms = fs::status(folder, ignored).permissions();
  if (perms != fs::perms::unknown && (perms & fs::perms::others_write) != fs::perms::none)
    wrong.push_back("all users may write to " + folder.string() +
                    ", the folder of [agent] job_socket, which containers mount" + advice);
  return wrong;
}

ConfigResult ReadConfigFiles(const std::string& path, MainFile main_file) {
  ConfigResult result;
  FileReader(path, &result).Read(main_file);
  for (const std::string& file : DropIns(path, &result.errors))
    FileReader(file, &result).Read(MainFile::kMustBeThere);
  for (const DeviceSetting& device : result.config.devices) {
    if (device.memory_bytes < 0 && !result.config.find_devices)
      result.errors.push_back(
          path + ": the memory of device " + device.uuid +
          " is a share, which takes NVML: write it in bytes, or set [devices] find = true");
  }
  for (const auto& wrongs :
       {WrongHttpSettings(result.config), WrongJobSocketSettings(result.config, path)}) {
    for (const std::string& wrong : wrongs)
      result.errors.push_back(base::Error{path, wrong}.text());
  }
  return result;
}

std::string ShowConfig(const Config& config) {
  std::string text, table;
  for (const ConfigField& field : ConfigFields()) {
    if (field.table != table)
      text += std::string(table.empty() ? "" : "\n") + "[" + field.table + "]\n";
    table = field.table;
    text += std::string(field.key) + " = " + Show(field, config) + "  # " + field.meaning + "\n";
  }
  text += "\n[defaults]\n" + ShowTerms(config.defaults);
  for (const std::string& entry : ShowLists(config)) text += "\n" + entry;
  return text;
}

std::vector<std::string> DifferencesBetween(const Config& from, const Config& to) {
  std::vector<std::string> lines;
  for (const ConfigField& field : ConfigFields()) {
    const std::string before = Show(field, from), after = Show(field, to);
    if (before != after)
      lines.push_back(std::string("[") + field.table + "] " + field.key + ": " + before + " -> " +
                      after);
  }
  for (const TermsField& field : TermsFields()) {
    const auto show = [&](const Config& config) {
      const std::optional<int64_t>& value = config.defaults.*(field.place);
      if (!value) return std::string("unset");
      if (field.kind == FieldKind::kTurns) return std::string(ShowTurns(*value));
      return field.kind == FieldKind::kSize ? ShowSize(*value) : std::to_string(*value);
    };
    if (show(from) != show(to))
      lines.push_back(std::string("[defaults] ") + field.key + ": " + show(from) + " -> " +
                      show(to));
  }
  AddListDifferences(ShowLists(from), ShowLists(to), &lines);
  return lines;
}

std::vector<std::string> NeedRestart(const Config& from, const Config& to) {
  std::vector<std::string> names;
  for (const ConfigField& field : ConfigFields()) {
    if (field.needs_restart && Show(field, from) != Show(field, to))
      names.push_back(std::string("[") + field.table + "] " + field.key);
  }
  if (from.devices != to.devices) names.push_back("[[device]]");
  return names;
}

Config WithoutRestart(const Config& running, Config next) {
  Config kept = running;
  for (const ConfigField& field : ConfigFields()) {
    if (!field.needs_restart) continue;
    std::visit([&](auto* place) { *place = *std::get<decltype(place)>(field.place(kept)); },
               field.place(next));
  }
  next.devices = kept.devices;
  return next;
}

}  // namespace spillway::agent
