// The readers of a command's table: parser, help, completions' words and manual pages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/options/option_help.h"
#include "cli/command_list.h"
#include "cli/failure.h"
#include "cli/options/option_manual.h"
#include "cli/options/option_parser.h"
#include "scheduler/plan/strategies/registry.h"

namespace spillway::cli {
namespace {

using base::OptionsHelp;
using base::OptionsUsage;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

struct Trip {
  std::string goal, pace;
  bool json = false, help = false;
  std::string socket;
};

constexpr OptionRow<Trip> kTripRows[] = {
    {{"goal", 'g', Value("PLACE"), "where to go"},
     [](Trip& trip, const std::string& value) { trip.goal = value; }},
    {{"pace", 0, ValueIfAny("PACE", Kind::kWords, "slow fast"), "how fast ({values})"},
     [](Trip& trip, const std::string& value) { trip.pace = value.empty() ? "slow" : value; }},
    JsonRow<Trip>(),
    SocketRow<Trip>(),
    HelpRow<Trip>(),
};

std::string TripRefusalOf(const std::vector<std::string>& arguments) {
  Trip trip;
  try {
    ParseOptions(arguments, kTripRows, trip);
  } catch (const Failure& failure) {
    return failure.text();
  }
  return "accepted";
}

TEST(OptionParserTest, StoresEachSpellingOfAValue) {
  for (const std::vector<std::string>& spelling : {std::vector<std::string>{"go", "--goal", "home"},
                                                   {"go", "--goal=home"},
                                                   {"go", "--go", "home"},
                                                   {"go", "-g", "home"},
                                                   {"go", "-ghome"}}) {
    Trip trip;
    ParseOptions(spelling, kTripRows, trip);
    EXPECT_EQ(trip.goal, "home");
  }
}

TEST(OptionParserTest, OptionalValueStandsBehindTheSignAlone) {
  Trip trip;
  EXPECT_THAT(ParseOptions({"go", "--pace", "fast"}, kTripRows, trip), ElementsAre("fast"));
  EXPECT_EQ(trip.pace, "slow");
  ParseOptions({"go", "--pace=fast"}, kTripRows, trip);
  EXPECT_EQ(trip.pace, "fast");
}

TEST(OptionParserTest, OptionsEndAtTheFirstOperand) {
  Trip trip;
  EXPECT_THAT(ParseOptions({"go", "--json", "walk", "--help"}, kTripRows, trip),
              ElementsAre("walk", "--help"));
  EXPECT_TRUE(trip.json);
  EXPECT_FALSE(trip.help);
}

TEST(OptionParserTest, OptionsAnywhereAreFoundBetweenOperands) {
  Trip trip;
  EXPECT_THAT(ParseOptionsAnywhere({"go", "a", "--json", "b", "-h"}, kTripRows, trip),
              ElementsAre("a", "b"));
  EXPECT_TRUE(trip.json);
  EXPECT_TRUE(trip.help);
}

TEST(OptionParserTest, NamesOptionsThatItCannotUse) {
  EXPECT_THAT(TripRefusalOf({"go", "--gaol", "x"}), HasSubstr("cannot use --gaol"));
  EXPECT_THAT(TripRefusalOf({"go", "--json=1"}), HasSubstr("cannot use --json=1"));
  EXPECT_THAT(TripRefusalOf({"go", "-p"}), HasSubstr("cannot use -p"));
  EXPECT_THAT(TripRefusalOf({"go", "--goal"}), HasSubstr("--goal needs a value"));
  EXPECT_THAT(TripRefusalOf({"go", "--goal"}), HasSubstr("see: spillway help go"));
}

TEST(OptionHelpTest, AlignsAndWrapsDescriptions) {
  const std::string long_text(100, 'x');
  const std::string description = "first " + long_text + " last";
  const Option options[] = {{"goal", 'g', Value("PLACE"), "where to go"},
                            {"pace", 0, ValueIfAny("PACE", Kind::kWords, "slow fast"), "{values}"},
                            {"wordy", 0, kNoValue, description},
                            {"with-a-name-as-long-as-this", 0, kNoValue, "below"}};
  EXPECT_EQ(OptionsHelp({std::begin(options), std::end(options)}),
            "  -g, --goal PLACE   where to go\n"
            "      --pace[=PACE]  slow, fast\n"
            "      --wordy        first\n"
            "                     " +
                long_text.substr(0, 99) +
                "x\n"
                "                     last\n"
                "      --with-a-name-as-long-as-this\n"
                "                     below\n");
}

TEST(OptionHelpTest, UsageShowsAllOptionsButHelp) {
  EXPECT_EQ(OptionsUsage(OptionsIn(kTripRows)),
            "[--goal PLACE] [--pace[=PACE]] [--json] [--socket PATH]");
}

TEST(OptionManualTest, FormsOfWordsChooseTheirMacros) {
  const Option option = {"goal", 'g', Value("PLACE"),
                         "where to go (default: $GOAL, or ~/goal). See `go home` and --pace=slow, "
                         "(--json alone), A_B; /etc/x"};
  EXPECT_EQ(OptionsManual({option}),
            ".Bl -tag -width Ds\n"
            ".It Fl g , Fl Fl goal Ar place\n"
            "Where to go (default:\n"
            ".Ev GOAL ,\n"
            "or\n"
            ".Pa ~/goal ) .\n"
            "See\n"
            ".Ql go home\n"
            "and\n"
            ".Fl Fl pace Ns = Ns Cm slow ,\n"
            ".No \\&( Ns Fl Fl json\n"
            "alone),\n"
            ".Ev A_B ;\n"
            ".Pa /etc/x .\n"
            ".El\n");
}

TEST(OptionManualTest, HeadsShowEachNeedOfAValue) {
  EXPECT_THAT(OptionsManual(OptionsIn(kTripRows)),
              HasSubstr("\n.It Fl Fl pace Ns Op = Ns Ar pace\nHow fast (slow, fast).\n"
                        ".It Fl Fl json\nFor scripts.\n"));
}

TEST(OptionTest, FirstClauseLeavesOutDetails) {
  EXPECT_EQ(FirstClauseOf(kSocketOption), "the agent's socket");
  EXPECT_EQ(FirstClauseOf({"x", 0, kNoValue, "make no plan: move memory. Rarely"}), "make no plan");
}

TEST(OptionTest, StrategiesAreCompletedWithTheSchedulers) {
  const Option option = {"strategy", 's', StrategyValue("all"), ""};
  EXPECT_THAT(WordsOf(option), SizeIs(scheduler::AllStrategies().size() + 1));
  EXPECT_THAT(WordsOf(option), Contains("all"));
}

// Getopt takes an option's name up to its terminating zero.
TEST(CommandListTest, OptionsOfACommandAreDistinctAndDescribed) {
  for (const Command& command : AllCommands()) {
    std::string letters;
    std::vector<std::string_view> names;
    for (const Option& option : command.options) {
      EXPECT_THAT(names, Not(Contains(option.name))) << command.name;
      EXPECT_FALSE(option.letter != 0 && letters.find(option.letter) != std::string::npos);
      EXPECT_EQ(option.name.data()[option.name.size()], '\0');
      EXPECT_FALSE(DescriptionOf(option).empty()) << command.name << " --" << option.name;
      EXPECT_EQ(option.value.need == Need::kNever, option.value.name.empty()) << option.name;
      names.push_back(option.name);
      letters += option.letter;
    }
  }
}

}  // namespace
}  // namespace spillway::cli
