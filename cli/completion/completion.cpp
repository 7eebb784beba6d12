#include "cli/completion/completion.h"

#include "cli/failure.h"

namespace spillway::cli {

std::string CompletionScript(const std::vector<std::string>& arguments) {
  const std::string shell = arguments.size() == 2 ? arguments[1] : "";
  if (shell == "bash") return BashCompletion(AllCommands(), DaemonCommand());
  if (shell == "zsh") return ZshCompletion(AllCommands(), DaemonCommand());
  if (shell == "fish") return FishCompletion(AllCommands(), DaemonCommand());
  throw Failure(kExitUsage, "say for which shell", "completions are made for bash, zsh and fish",
                "for example: eval \"$(spillway completion bash)\"");
}

}  // namespace spillway::cli
