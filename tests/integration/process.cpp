#include "tests/integration/process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace spillway::test {
namespace {

// With pipes, a program that fills one while the parent waits for the other would hang.
struct Capture {
  FILE* const file = std::tmpfile();
  ~Capture() { std::fclose(file); }
  std::string Text() const {
    std::rewind(file);
    std::string text;
    for (int letter; (letter = std::fgetc(file)) != EOF;) text.push_back(static_cast<char>(letter));
    return text;
  }
};

std::vector<char*> Pointers(std::vector<std::string>* words) {
  std::vector<char*> pointers;
  for (std::string& word : *words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Ended RunProgram(const std::vector<std::string>& command, const Environment& environment) {
  std::vector<std::string> words = command;
  std::vector<std::string> variables = {std::string("PATH=") + std::getenv("PATH")};
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  const std::vector<char*> arguments = Pointers(&words);
  const std::vector<char*> environment_block = Pointers(&variables);
  const Capture output, errors;

  const pid_t child = fork();
  if (child == 0) {
    dup2(fileno(output.file), STDOUT_FILENO);
    dup2(fileno(errors.file), STDERR_FILENO);
    execvpe(arguments[0], arguments.data(), environment_block.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const int exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {exit_code, output.Text(), errors.Text()};
}

std::string FileText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace spillway::test
