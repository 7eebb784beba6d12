#include "protocol/codec.h"

#include <gtest/gtest.h>

#include "tests/unit/protocol/samples.h"

namespace spillway::protocol {
namespace {

Fault FaultOf(const Frame& frame, size_t size = kFrameBytes) {
  return Decode(frame.data(), size).fault;
}

Frame Changed(const Message& message, size_t at, uint8_t byte) {
  Frame frame = Encode(message);
  frame[at] = byte;
  return frame;
}

TEST(CodecTest, EveryKindSurvivesEncodingAndDecoding) {
  ASSERT_EQ(Samples().size(), std::variant_size_v<Message>) << "a kind has no sample";
  for (const Message& message : Samples()) {
    const Frame frame = Encode(message);
    const Decoded decoded = Decode(frame.data(), frame.size());
    ASSERT_TRUE(decoded.message) << NameOf(message) << ": " << NameOf(decoded.fault);
    EXPECT_EQ(*decoded.message, message) << NameOf(message);
  }
}

TEST(CodecTest, FramesOfAnotherSizeAreRefused) {
  const Frame frame = Encode(Goodbye{});

  EXPECT_EQ(FaultOf(frame, 0), Fault::kSize);
  EXPECT_EQ(FaultOf(frame, kFrameBytes - 1), Fault::kSize);
  EXPECT_EQ(FaultOf(Changed(Goodbye{}, 8, 0xff)), Fault::kSize);
}

TEST(CodecTest, OtherProtocolsVersionsAndKindsAreRefused) {
  EXPECT_EQ(FaultOf(Changed(Goodbye{}, 0, 'X')), Fault::kMagic);
  EXPECT_EQ(FaultOf(Changed(Goodbye{}, 4, kNewestVersion + 1)), Fault::kVersion);
  EXPECT_EQ(FaultOf(Changed(Goodbye{}, 4, 0)), Fault::kVersion);
  EXPECT_EQ(FaultOf(Changed(Goodbye{}, 6, 0)), Fault::kKind);
  EXPECT_EQ(FaultOf(Changed(Goodbye{}, 6, std::variant_size_v<Message> + 1)), Fault::kKind);
}

TEST(CodecTest, KindIsRefusedInVersionsBeforeItsOwn) {
  EXPECT_EQ(FaultOf(Encode(Goodbye{}, 1)), Fault::kNone);
  EXPECT_EQ(FaultOf(Encode(AskSlabs{}, 2)), Fault::kNone);
  EXPECT_EQ(FaultOf(Encode(AskSlabs{}, 1)), Fault::kKind);
  EXPECT_EQ(FaultOf(Encode(Leaving{}, 1)), Fault::kKind);
  EXPECT_EQ(FaultOf(Encode(RecallPlans{}, 3)), Fault::kNone);
  EXPECT_EQ(FaultOf(Encode(RecallPlans{}, 2)), Fault::kKind);
  EXPECT_EQ(FaultOf(Encode(AskPlan{.size_bytes = 1}, 2)), Fault::kKind);
  EXPECT_EQ(FaultOf(Encode(Account{}, 4)), Fault::kNone);
  EXPECT_EQ(FaultOf(Encode(Account{}, 3)), Fault::kKind);
  EXPECT_EQ(FaultOf(Encode(StepTimes{}, 3)), Fault::kKind);
  EXPECT_EQ(FaultOf(Encode(Footprint{}, 5)), Fault::kKind);
  EXPECT_EQ(FaultOf(Encode(HostNeed{}, 3)), Fault::kNone);
  EXPECT_EQ(FaultOf(Encode(ExpectJob{}, 7)), Fault::kNone);
  EXPECT_EQ(FaultOf(Encode(ExpectJob{}, 6)), Fault::kKind);
  EXPECT_EQ(FaultOf(Encode(WorkspaceGrant{}, 8)), Fault::kNone);
  EXPECT_EQ(FaultOf(Encode(WorkspaceGrant{}, 7)), Fault::kKind);
  EXPECT_EQ(FaultOf(Encode(LostTime{}, 11)), Fault::kNone);
  for (const Message& message :
       {Message(OpenListener{}), Message(CloseListener{}), Message(ListenerPlace{})}) {
    EXPECT_EQ(FaultOf(Encode(message, 12)), Fault::kNone);
    EXPECT_EQ(FaultOf(Encode(message, 11)), Fault::kKind);
  }
}

TEST(CodecTest, NamesBeyondTheirCountAreRefused) {
  EXPECT_EQ(FaultOf(Encode(ReturnSlabs{})), Fault::kField) << "none at all";
  EXPECT_EQ(FaultOf(Encode(HeldSlabs{})), Fault::kNone);
  EXPECT_EQ(FaultOf(Encode(HeldSlabs{true, {kMostSlabsAtOnce + 1, {}}})), Fault::kField);
  const size_t second_name_at = kHeaderBytes + 4 + 8;
  EXPECT_EQ(FaultOf(Changed(ReturnSlabs{{1, {SlabName{9}}}}, second_name_at, 1)), Fault::kField);
}

TEST(CodecTest, PlansOfImpossibleSizesAreRefused) {
  EXPECT_EQ(FaultOf(Encode(AskPlan{.size_bytes = kMostPlanBytes})), Fault::kNone);
  EXPECT_EQ(FaultOf(Encode(AskPlan{.size_bytes = kMostPlanBytes + 1})), Fault::kField);
  EXPECT_EQ(FaultOf(Encode(AskPlan{})), Fault::kField) << "nothing is no request";
  EXPECT_EQ(FaultOf(Encode(RecalledPlans{.count = 1, .sizes_bytes = {1}})), Fault::kNone);
  EXPECT_EQ(FaultOf(Encode(RecalledPlans{.count = 1})), Fault::kField);
  EXPECT_EQ(FaultOf(Encode(RecalledPlans{.count = 0, .sizes_bytes = {1}})), Fault::kField);
  EXPECT_EQ(FaultOf(Encode(RecalledPlans{.count = kMostRecalled + 1})), Fault::kField);
}

TEST(CodecTest, HelloOfANewerVersionIsUnderstood) {
  const Frame frame = Changed(Hello{2, 9, Role::kJob, 0, "younger"}, 4, 9);

  const Decoded decoded = Decode(frame.data(), frame.size());

  ASSERT_TRUE(decoded.message);
  EXPECT_EQ(std::get<Hello>(*decoded.message).oldest_version, 2);
}

TEST(CodecTest, FieldsOutsideTheirRangeAreRefused) {
  EXPECT_EQ(FaultOf(Encode(Register{.device = kMostDevices})), Fault::kField);
  EXPECT_EQ(FaultOf(Encode(Register{.wanted_bytes = -1})), Fault::kField);
  EXPECT_EQ(FaultOf(Encode(Register{.wanted_bytes = kMostBytes + 1})), Fault::kField);
  EXPECT_EQ(FaultOf(Encode(Usage{.stall_ns = -1})), Fault::kField);
  EXPECT_EQ(FaultOf(Encode(Admission{.state = AdmissionState{4}})), Fault::kField);
  EXPECT_EQ(FaultOf(Encode(Admission{.state = AdmissionState{0}})), Fault::kField);
  EXPECT_EQ(FaultOf(Encode(SetBudget{.limit_bytes = -2})), Fault::kField);
  EXPECT_EQ(FaultOf(Changed(Usage{}, kHeaderBytes + 4, 2)), Fault::kField) << "a flag is 0 or 1";
}

TEST(CodecTest, UnprintableOrUnterminatedTextIsRefused) {
  const size_t text_at = kHeaderBytes + 1;  // Control: an action, then 16 bytes of text

  EXPECT_EQ(FaultOf(Changed(Control{Action::kLogLevel, "debug"}, text_at, '\n')), Fault::kField);
  EXPECT_EQ(FaultOf(Changed(Control{Action::kLogLevel, "debug"}, text_at + 9, 'x')), Fault::kField)
      << "behind the end";
  EXPECT_EQ(FaultOf(Changed(Control{Action::kLogLevel, "fifteen letters"}, text_at + 15, 'x')),
            Fault::kField);
}

TEST(CodecTest, NonzeroPaddingIsRefused) {
  EXPECT_EQ(FaultOf(Changed(Goodbye{}, 12, 1)), Fault::kLeftover);
  EXPECT_EQ(FaultOf(Changed(Goodbye{}, kHeaderBytes + 4, 1)), Fault::kLeftover);
  EXPECT_EQ(FaultOf(Changed(Goodbye{}, kFrameBytes - 1, 1)), Fault::kLeftover);
}

TEST(CodecTest, TextIsTruncatedAndMadePrintable) {
  EXPECT_EQ(Text<4>("longer").view(), "lon");
  EXPECT_EQ(Text<8>("a\nb\x80").view(), "a?b?");
}

}  // namespace
}  // namespace spillway::protocol
